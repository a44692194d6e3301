//! The first whole run: random changes against a model.

use zubilo::*;
#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zubilo");
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let mut x = 88172645463325252u64;
    let mut rnd = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    let mut model = std::collections::BTreeMap::new();
    for round in 0..300 {
        let mut w = env.write().unwrap();
        let mut t = w.table_or_create("t").unwrap();
        for _ in 0..200 {
            let k = (rnd() % 20000).to_be_bytes().to_vec();
            let r = rnd();
            if r % 3 == 0 {
                assert_eq!(t.delete(&k).unwrap(), model.remove(&k).is_some());
            } else {
                let len = if r % 50 == 1 { 5000 + r % 20000 } else { r % 200 } as usize;
                let v = vec![(r % 251) as u8; len];
                t.put(&k, &v).unwrap();
                model.insert(k, v);
            }
        }
        if round % 7 == 3 {
            w.abort();
            let r = env.read().unwrap();
            let t = r.table("t").unwrap();
            model = t
                .iter()
                .map(|r| {
                    let (k, v) = r.unwrap();
                    (k.to_vec(), v.to_vec())
                })
                .collect();
        } else {
            w.commit().unwrap();
        }
        let r = env.read().unwrap();
        let t = r.table("t").unwrap();
        assert_eq!(t.len(), model.len() as u64);
        let report = env.check(&mut |_, _| true).unwrap();
        assert!(
            report.is_ok(),
            "round {round}: {:?}",
            &report.problems[..report.problems.len().min(5)]
        );
        if round % 50 == 0 {
            assert!(t.iter().map(|r| r.unwrap()).eq(model.iter().map(|(k, v)| (&k[..], &v[..]))));
            assert!(
                t.iter()
                    .rev()
                    .map(|r| r.unwrap())
                    .eq(model.iter().rev().map(|(k, v)| (&k[..], &v[..])))
            );
        }
    }
}
