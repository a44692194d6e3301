//! Keys and values of the program's own types: their order is the derived one, what is read is what was stored, and
//! what is noted names fields and variants.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use zubilo::{Env, Options};
use zubilo_typed::{Error, Key, Multimap, Result, Table, Value};

fn fresh() -> (tempfile::TempDir, Env) {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("store")).unwrap();
    (dir, env)
}

#[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    country: String,
    number: i32,
    kind: Kind,
    code: [u8; 2],
    tail: Option<Vec<u8>>,
}

#[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Town,
    River(String, u8),
    Road { number: u16, names: (String, bool) },
    Nested(Box2),
}

#[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Box2(Inner, String);

#[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inner(char);

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Nothing;

fn text() -> impl Strategy<Value = String> {
    "[a\u{0}\u{1}\u{ff}]{0,3}"
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Town),
        (text(), any::<u8>()).prop_map(|(name, n)| Kind::River(name, n)),
        (0..3u16, text(), any::<bool>())
            .prop_map(|(number, name, is)| Kind::Road { number, names: (name, is) }),
        (any::<char>(), text()).prop_map(|(c, name)| Kind::Nested(Box2(Inner(c), name))),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    let tail = proptest::option::of(proptest::collection::vec(0..2u8, 0..3));
    (text(), -2..2i32, kind(), any::<[bool; 2]>(), tail).prop_map(
        |(country, number, kind, code, tail)| Place {
            country,
            number,
            kind,
            code: code.map(u8::from),
            tail,
        },
    )
}

fn encoded<T: Value>(value: T::Input<'_>) -> Vec<u8> {
    T::encoded(value, <[u8]>::to_vec).unwrap()
}

proptest! {
    #[test]
    fn bytes_sort_as_the_derived_order_does(a in place(), b in place()) {
        let (x, y) = (encoded::<Place>(&a), encoded::<Place>(&b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b), "{:?} {:?}", a, b);
        prop_assert_eq!(Place::decode(&x).unwrap(), a);
    }

    #[test]
    fn variants_sort_in_the_order_of_their_declaration(a in kind(), b in kind()) {
        prop_assert_eq!(encoded::<Kind>(&a).cmp(&encoded::<Kind>(&b)), a.cmp(&b), "{:?} {:?}", a, b);
        // Also where something follows.
        let pair = |kind: &Kind| encoded::<(Kind, u8)>((kind, 7));
        prop_assert_eq!(pair(&a).cmp(&pair(&b)), a.cmp(&b), "{:?} {:?}", a, b);
        prop_assert_eq!(<(Kind, u8)>::decode(&pair(&a)).unwrap(), (a, 7));
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(place) = Place::decode(&bytes) {
            prop_assert_eq!(encoded::<Place>(&place), bytes);
        }
    }

    #[test]
    fn tables_of_derived_keys_are_maps(places in proptest::collection::vec(place(), 1..30)) {
        const PLACES: Table<Place, u32> = Table::new("places");
        let (_dir, env) = fresh();
        let mut txn = env.write().unwrap();
        let mut table = PLACES.open_mut(&mut txn).unwrap();
        let mut model = BTreeMap::new();
        for (n, place) in places.iter().enumerate() {
            table.put(place, n as u32).unwrap();
            model.insert(place.clone(), n as u32);
        }
        let all: Vec<_> = table.iter().map(Result::unwrap).collect();
        prop_assert!(all.iter().map(|(k, v)| (k, v)).eq(&model));
        let one = &places[0];
        let before = table.range(..one).count();
        prop_assert_eq!(before, model.range(..one).count());
        let of_country = table.prefix((one.country.as_str(),)).count();
        prop_assert_eq!(of_country, model.keys().filter(|p| p.country == one.country).count());
        let of_both = table.prefix((one.country.as_str(), one.number)).map(Result::unwrap);
        let same = |p: &&Place| p.country == one.country && p.number == one.number;
        prop_assert!(of_both.map(|(k, _)| k).eq(model.keys().filter(same).cloned()));
        prop_assert_eq!(table.pop_last().unwrap(), model.pop_last());
    }
}

#[derive(Value, Clone, Debug, PartialEq)]
#[zubilo(format = "fields")]
struct City {
    people: u64,
    area: f64,
    place: Option<Place>,
}

#[derive(Value, Clone, Debug, PartialEq)]
#[zubilo(format = "tuple")]
struct Pair {
    left: String,
    right: u8,
}

#[derive(Value, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[zubilo(format = "postcard")]
struct Person {
    name: String,
    nicknames: Vec<String>,
}

#[derive(Value, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[zubilo(format = "postcard")]
enum Event {
    Came,
    Said(String),
}

#[derive(Value, bytemuck::Pod, bytemuck::Zeroable, Clone, Copy, Debug, PartialEq)]
#[zubilo(format = "aligned")]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

fn tag<T: Value>() -> String {
    let mut text = String::new();
    T::tag(&mut text);
    text
}

#[test]
fn what_is_noted_names_fields_and_variants() {
    let kind = "enum{Town,River(str,u8),Road{number:u16,names:(str,bool)},Nested((char,str))}";
    assert_eq!(tag::<Kind>(), kind);
    let place = format!("{{country:str,number:i32,kind:{kind},code:bytes2,tail:option<bytes>}}");
    assert_eq!(tag::<Place>(), place);
    assert_eq!(tag::<City>(), format!("{{people:u64,area:f64,place:option<{place}>}}"));
    assert_eq!(tag::<Box2>(), "(char,str)");
    assert_eq!(tag::<Inner>(), "char");
    assert_eq!(tag::<Nothing>(), "()");
    assert_eq!(tag::<Pair>(), tag::<(String, u8)>());
    assert_eq!(tag::<Person>(), "postcard{name,nicknames}");
    assert_eq!(tag::<Event>(), "postcard{Came,Said}");
    assert!(tag::<Point>().starts_with("aligned<16/8 ") && tag::<Point>().ends_with(">{x,y}"));
}

#[test]
fn widths_are_known_where_they_are_always_the_same() {
    #[derive(Key)]
    enum Same {
        One(u16),
        Other(bool, u8),
    }
    assert_eq!(<Inner as Value>::WIDTH, Some(4));
    assert_eq!(<Nothing as Value>::WIDTH, Some(0));
    assert_eq!(<Same as Value>::WIDTH, Some(3));
    assert_eq!(<Kind as Value>::WIDTH, None);
    assert_eq!(<City as Value>::WIDTH, None);
    assert_eq!((<Point as Value>::WIDTH, <Point as Value>::ALIGN), (Some(16), 8));
}

#[test]
fn values_of_every_format_come_back() -> Result<()> {
    let (_dir, env) = fresh();
    let mut txn = env.write()?;
    let paris = City { people: 2_100_000, area: 105.4, place: None };
    let table = Table::<&str, City>::new("cities");
    table.open_mut(&mut txn)?.put("Paris", &paris)?;
    assert_eq!(table.open_mut(&mut txn)?.get("Paris")?, Some(paris.clone()));
    let grown = |city: City| City { people: city.people + 1, ..city };
    let mut cities = table.open_mut(&mut txn)?;
    let counted = cities.entry("Paris")?.and_modify(grown)?.or_insert(&paris)?;
    assert_eq!(counted.people, 2_100_001);

    let pairs = Table::<u8, Pair>::new("pairs");
    let pair = Pair { left: "l".to_string(), right: 7 };
    pairs.open_mut(&mut txn)?.put(1, &pair)?;
    assert_eq!(pairs.open_mut(&mut txn)?.take(1)?, Some(pair));
    // A table of tuples it is, too.
    Table::<u8, (&str, u8)>::new("pairs").open_mut(&mut txn)?.put(2, ("tuple", 9))?;
    let read = pairs.open_mut(&mut txn)?.get(2)?.unwrap();
    assert_eq!((read.left.as_str(), read.right), ("tuple", 9));

    let people = Table::<u32, Person>::new("people");
    let ada = Person { name: "Ada".to_string(), nicknames: vec!["Countess".to_string()] };
    people.open_mut(&mut txn)?.put(1, &ada)?;
    assert_eq!(people.open_mut(&mut txn)?.pop_first()?, Some((1, ada)));

    let events = Table::<u32, Event>::new("events");
    events.open_mut(&mut txn)?.put(1, &Event::Said("no".to_string()))?;
    events.open_mut(&mut txn)?.put(2, &Event::Came)?;
    assert_eq!(events.open_mut(&mut txn)?.take(1)?, Some(Event::Said("no".to_string())));

    let points = Table::<u32, Point>::new("points");
    points.open_mut(&mut txn)?.put(1, &Point { x: 1.0, y: -2.0 })?;
    // Read in place.
    assert_eq!(points.open_mut(&mut txn)?.get(1)?, Some(&Point { x: 1.0, y: -2.0 }));

    let kinds = Multimap::<Nothing, Kind>::new("kinds");
    let mut kinds = kinds.open_mut(&mut txn)?;
    kinds.insert(&Nothing, &Kind::River("Elbe".to_string(), 1))?;
    kinds.insert(&Nothing, &Kind::Town)?;
    assert_eq!(kinds.first_of(&Nothing)?, Some(Kind::Town));
    assert_eq!(kinds.count(&Nothing)?, 2);
    Ok(())
}

#[test]
fn a_type_whose_fields_have_changed_places_is_refused() {
    mod later {
        #[derive(zubilo_typed::Value)]
        #[zubilo(format = "fields")]
        pub(super) struct City {
            pub(super) area: f64,
            pub(super) people: u64,
        }
    }
    mod before {
        #[derive(zubilo_typed::Value)]
        #[zubilo(format = "fields")]
        pub(super) struct City {
            pub(super) people: u64,
            pub(super) area: f64,
        }
    }
    let (_dir, env) = fresh();
    let mut txn = env.write().unwrap();
    let before = Table::<u8, before::City>::new("cities");
    before.open_mut(&mut txn).unwrap().put(1, &before::City { people: 1, area: 2.0 }).unwrap();
    let refused = Table::<u8, later::City>::new("cities").open_mut(&mut txn).map(drop);
    let Err(Error::Types { found, wanted, .. }) = refused else { panic!("it was opened") };
    assert_eq!(found.as_deref(), Some("table<u8, {people:u64,area:f64}>"));
    assert_eq!(wanted, "table<u8, {area:f64,people:u64}>");
    let kept = before.open_mut(&mut txn).unwrap().get(1).unwrap().unwrap();
    assert_eq!((kept.people, kept.area), (1, 2.0));
    let new = later::City { area: 2.0, people: 1 };
    Table::<u8, later::City>::new("new").open_mut(&mut txn).unwrap().put(1, &new).unwrap();
}

#[test]
fn numbers_of_no_variant_and_bytes_too_many_are_errors() {
    for bytes in [&[][..], &[4], &[0, 0], &[255], &[1], &[2, 0]] {
        assert!(matches!(Kind::decode(bytes), Err(Error::Decode { .. })), "{bytes:?}");
    }
    assert!(matches!(Nothing::decode(&[1]), Err(Error::Decode { ty: "Nothing", .. })));
    assert_eq!(Kind::decode(&[0]).unwrap(), Kind::Town);
}
