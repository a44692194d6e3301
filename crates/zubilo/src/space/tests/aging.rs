//! placeholder
use super::super::{Extent, Policy, Space};
use super::Random;

struct Store { space: Space, leaves: Vec<u64>, hot: Vec<u64>, random: Random, live: u64 }

fn free(space: &mut Space, page: u64) { space.give_back(Extent{first: page, count: 1}); }

fn run(live: u64, lifetimes: u64, mode: u32) -> (f64, Vec<usize>) {
    let mut s = Store{ space: Space::new(live), leaves: (3..live-222).collect(), hot: (live-222..live).collect(), random: Random(5), live };
    let mut hotspace = Space::new(0);
    let commits = lifetimes * live / 4;
    let slack = live*6/10;
    let ring = 2048u64.min(slack/4);
    if mode>0 { for i in 0..ring { hotspace.retire(&[super::super::Retired{first:0,count:0,birth:0,death:0}]); let _=i; } hotspace = Space::new(ring); for h in 222..ring { hotspace.give_back(Extent{first:h,count:1}); } s.hot=(0..222).collect(); s.leaves=(3..live-222).collect(); }
    let cap = if mode>0 { live-222 + slack - (ring-222)} else { live+slack };
    let mut hist = vec![0usize; 40];
    let mut total=0usize;
    for c in 0..commits {
        let pieces;
        let mut freed = vec![]; let mut hfreed=vec![];
        let mut li=vec![]; while li.len()<4 { let i=s.random.below(s.leaves.len() as u64) as usize; if !li.contains(&i){li.push(i);} }
        let mut hi=vec![]; while hi.len()<6 { let i=if hi.len()<2 {220+hi.len()} else {s.random.below(220) as usize}; if !hi.contains(&i){hi.push(i);} }
        if mode==0 {
            let t = s.space.allocate(10, Policy::Contiguous, cap, u64::MAX>>20).unwrap();
            pieces=t.len();
            let mut it=t.iter().flat_map(|e|e.first..e.end());
            for &i in &li { freed.push(std::mem::replace(&mut s.leaves[i], it.next().unwrap())); }
            for &i in &hi { freed.push(std::mem::replace(&mut s.hot[i], it.next().unwrap())); }
        } else {
            let t = s.space.allocate(4, Policy::Contiguous, cap, u64::MAX>>20).unwrap();
            let h = hotspace.allocate(6, Policy::Contiguous, ring, u64::MAX>>20).unwrap();
            pieces=t.len()+h.len();
            let mut it=t.iter().flat_map(|e|e.first..e.end());
            for &i in &li { freed.push(std::mem::replace(&mut s.leaves[i], it.next().unwrap())); }
            let mut it=h.iter().flat_map(|e|e.first..e.end());
            for &i in &hi { hfreed.push(std::mem::replace(&mut s.hot[i], it.next().unwrap())); }
        }
        for p in freed { free(&mut s.space,p); }
        for p in hfreed { free(&mut hotspace,p); }
        if c >= commits/2 { hist[pieces.min(39)]+=1; total+=1; }
    }
    let mean = hist.iter().enumerate().map(|(i,n)|i*n).sum::<usize>() as f64/total as f64;
    assert!(s.live>0);
    (mean, hist)
}
#[test] #[ignore]
fn aged() {
    for mode in [0,1] { for live in [5_000u64, 50_000] {
        let (m,h)=run(live, 10, mode);
        println!("mode {mode} live {live} mean {m:.2} hist {:?}", &h[..14]);
    }}
}
