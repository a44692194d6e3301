//! Errors name the table, the option and the file that they are about.

use zubilo::{Error, KeyOrder, Options, TableOptions};

use crate::common::{fresh, geometry};

fn text<T>(result: Result<T, Error>) -> String {
    result.map(drop).expect_err("it is refused").to_string()
}

#[test]
fn errors_name_the_table() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    let wanted = "no such table: \"fru\\u{7}it\"";
    let name = "fru\u{7}it";
    assert_eq!(text(txn.table(name)), wanted);
    assert_eq!(text(txn.table_with(name, &TableOptions::new())), wanted);
    assert_eq!(text(txn.table_id(name)), wanted);
    assert_eq!(text(txn.table_options(name)), wanted);
    assert_eq!(text(txn.table_stats(name)), wanted);
    assert_eq!(text(txn.drop_table(name)), wanted);
    assert_eq!(text(txn.rename_table(name, "other")), wanted);
    assert_eq!(text(txn.view().unwrap().table(name)), wanted);
    assert_eq!(text(txn.table(b"\xff")), "no such table: \"\\xff\"");
    txn.create_table("one", TableOptions::new()).unwrap();
    let handle = txn.create_table("two", TableOptions::new()).unwrap().handle();
    let gone = txn.table_id("two").unwrap();
    assert_eq!(text(txn.create_table("one", TableOptions::new())), "the table exists: \"one\"");
    assert_eq!(text(txn.rename_table("two", "one")), "the table exists: \"one\"");
    txn.drop_table("two").unwrap();
    assert_eq!(text(txn.open(&handle)), "no such table: \"two\"");
    assert!(text(txn.at(gone)).contains("it was dropped"));
    txn.commit().unwrap();

    let read = env.read().unwrap();
    assert_eq!(text(read.table(name)), wanted);
    assert_eq!(text(read.table_with(name, &TableOptions::new())), wanted);
    assert_eq!(text(read.table_stats(name)), wanted);
    assert_eq!(text(read.handle(name)), wanted);
    assert_eq!(text(read.open(&handle)), "no such table: \"two\"");
    assert_eq!(text(read.into_shared().owned_table(name)), wanted);
    let missing = env.read().unwrap().table(name).map(drop);
    assert!(
        matches!(missing, Err(Error::NoSuchTable { table: Some(n) }) if *n == *name.as_bytes())
    );
}

#[test]
fn errors_name_the_option_that_differs() {
    let new = TableOptions::new;
    let by_length = |a: &[u8], b: &[u8]| a.len().cmp(&b.len());
    let cases = [
        (new(), new().key_order(KeyOrder::Integer), "another `key_order`"),
        (new().duplicates(), new(), "with `duplicates`"),
        (new(), new().duplicates(), "without `duplicates`"),
        (new().counted(), new(), "created `counted`"),
        (new(), new().counted(), "without `counted`"),
        (new().duplicates(), new().fixed_duplicates(), "`fixed_duplicates`"),
        (new().duplicates(), new().duplicates().value_order(KeyOrder::Integer), "`value_order`"),
        (new(), new().align_values(8), "another `align_values`"),
    ];
    for (made, wanted, says) in cases {
        let (_dir, path) = fresh();
        let env = Options::new().open(&path).unwrap();
        let mut txn = env.write().unwrap();
        txn.create_table("fruit", made).unwrap();
        let refused = text(txn.table_with("fruit", &wanted));
        assert!(refused.starts_with("table \"fruit\": ") && refused.contains(says), "{refused}");
        assert_eq!(text(txn.view().unwrap().table_with("fruit", &wanted)), refused);
        txn.commit().unwrap();
        assert_eq!(text(env.read().unwrap().table_with("fruit", &wanted)), refused);
    }
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    txn.create_table("words", new().compare_keys(by_length)).unwrap();
    txn.commit().unwrap();
    let refused = text(env.read().unwrap().table("words"));
    assert!(
        refused.starts_with("table \"words\": ") && refused.contains("comparator"),
        "{refused}"
    );
}

#[test]
fn errors_name_the_file_and_the_option_of_an_open() {
    let (_dir, path) = fresh();
    let shown = path.display().to_string();
    let missing = text(Options::new().create(false).open(&path));
    assert!(missing.contains(&shown), "{missing}");
    std::fs::write(&path, [7; 100_000]).unwrap();
    let foreign = text(Options::new().open(&path));
    assert!(foreign.contains(&shown), "{foreign}");
    std::fs::remove_file(&path).unwrap();
    let cases = [
        (Options::new().page_size(1000), "Options::page_size"),
        (Options::new().max_readers(0), "Options::max_readers"),
        (Options::new().read_only(true).exclusive(true), "Options::exclusive"),
        (Options::new().discard_newer(true), "Options::discard_newer"),
    ];
    for (options, says) in cases {
        let refused = text(options.open(&path));
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn a_full_store_and_a_full_table_of_readers_name_their_files() {
    let (_dir, path) = fresh();
    let shown = path.display().to_string();
    let small = geometry(|g| g.upper = 1 << 20);
    let env = Options::new().geometry(small).max_readers(16).open(&path).unwrap();
    let full = text(env.update(|txn| {
        let mut table = txn.table_or_create("t")?;
        (0..1000u32).try_for_each(|n| table.put(n.to_be_bytes(), [0; 2000]))
    }));
    assert!(full.starts_with(&format!("{shown} has reached its upper bound")), "{full}");

    let mut readers = Vec::new();
    let none_left = loop {
        match env.read() {
            Ok(reader) => readers.push(reader),
            Err(error) => break error.to_string(),
        }
    };
    assert!(none_left.contains(&format!("reader slots of {shown}-lock are taken")), "{none_left}");
}
