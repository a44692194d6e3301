//! What the library shows to programs: LMDB's functions and nothing else, under the name that
//! programs look for. A name too many could take the place of a program's own function.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object, ObjectSymbol};

/// The functions that a header of ours declares.
fn declared(header: &str) -> BTreeSet<String> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(header);
    let text = std::fs::read_to_string(header).expect("the header");
    let code = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("typedef"));
    let names = code.filter_map(|line| {
        let name = line.split('(').next()?.rsplit([' ', '*']).next()?;
        let ours = ["mdb_", "mdbx_", "zubilo_"].iter().any(|start| name.starts_with(start));
        (ours && !line.starts_with(['/', ' ', '\t', '}'])).then(|| name.to_string())
    });
    names.collect()
}

#[test]
fn exactly_the_documented_functions_are_exported() {
    let bytes = std::fs::read(common::library()).expect("the library");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let exported: BTreeSet<String> =
        defined.map(|symbol| symbol.name().expect("a name").to_string()).collect();
    let (lmdb, more) = (declared("lmdb.h"), declared("zubilo.h"));
    assert_eq!(lmdb.len(), 56, "{lmdb:?}");
    assert!(lmdb.iter().all(|name| name.starts_with("mdb_")), "{lmdb:?}");
    assert!(!more.iter().any(|name| name.starts_with("mdb_")), "{more:?}");
    assert_eq!(exported, &lmdb | &more);
}

#[test]
fn the_library_has_the_name_that_programs_look_for() {
    let bytes = std::fs::read(common::library()).expect("the library");
    let name = b"\0liblmdb.so.0\0";
    assert!(bytes.windows(name.len()).any(|window| window == name));
    // No versions of symbols: programs that were linked with LMDB ask for none.
    let file = object::File::parse(&*bytes).expect("an ELF file");
    assert!(object::Object::section_by_name(&file, ".gnu.version_d").is_none());
}
