//! The two ways of running a collective, the evaluator over its text and the body that `#[collective]` has compiled,
//! record the same program or find the same to be wrong: for every program of the tree, also the rejected ones, and for
//! random ones. A crate of all of them is generated and built once; `compare.rs` is its main program.
//!
//! `cargo test --test recorder -- --ignored` compares many more random programs.

mod random;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A file of the generated crate.
struct Module {
    /// Its name, as of the file that it was made from.
    shown: String,
    text: String,
    /// The collectives to be compared.
    names: Vec<String>,
    /// Whether it is to be free of warnings.
    clean: bool,
    /// The largest world size to compare.
    largest: u32,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The Rust files of a folder, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    files.sort();
    files
}

fn names(shown: &str, text: &str) -> Result<Vec<String>, String> {
    let found = quadrille_dsl::parse_file(shown, text).map_err(|findings| findings.to_string())?;
    Ok(found.into_iter().map(|collective| collective.name).collect())
}

/// Every program of the tree, and the files beside this one.
fn programs() -> Vec<Module> {
    let mut modules = Vec::new();
    for path in ["examples", "tests/programs"].into_iter().flat_map(files) {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let text = read(&path)
            .replace("#[collective(", "#[::quadrille::collective(")
            .replace("use quadrille::collective;", "");
        // The library alone has no `example::run`.
        let text = text.split("\nfn main()").next().unwrap_or_default().to_owned();
        let names = names(&shown, &text).unwrap_or_else(|e| panic!("{shown}: {e}"));
        assert!(!names.is_empty(), "{shown} has no collective");
        modules.push(Module { shown, text, names, clean: true, largest: 17 });
    }
    for (name, collectives) in
        [("hostile", &["hostile"][..]), ("made", &["gathers_forwards", "gathers_backwards"])]
    {
        let shown = format!("tests/recorder/{name}.rs");
        let (text, names) =
            (read(&root().join(&shown)), collectives.iter().map(|&name| name.to_owned()).collect());
        modules.push(Module { shown, text, names, clean: true, largest: 9 });
    }
    modules
}

/// The rejected programs that the parser accepts, but for modules of collectives: the macro proves those before it
/// leaves anything behind.
fn rejected() -> Vec<Module> {
    let entries = fs::read_dir(root().join("tests/reject")).expect("tests/reject");
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("a readable folder").file_name()).collect();
    folders.sort();
    let mut modules = Vec::new();
    for path in folders.iter().flat_map(|id| files(&format!("tests/reject/{}", id.display()))) {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let text = read(&path);
        if text.contains("collectives]") {
            continue;
        }
        let Ok(names) = names(&shown, &text) else { continue };
        let text = text.replace("use quadrille::collective;", "use unchecked::collective;");
        modules.push(Module { shown, text, names, clean: false, largest: 9 });
    }
    modules
}

fn randoms(seeds: std::ops::Range<u64>, count: usize) -> Vec<Module> {
    let module = |seed| {
        let shown = format!("seed {seed}");
        let text = format!("use unchecked::collective;\n\n{}", random::collectives(seed, count));
        let names =
            names(&shown, &text).unwrap_or_else(|e| panic!("the parser refuses a random program:\n{e}"));
        assert_eq!(names.len(), count);
        Module { shown, text, names, clean: false, largest: random::LARGEST }
    };
    seeds.map(module).collect()
}

/// Builds a crate of the modules and runs it: what it prints.
fn compare(name: &str, modules: &[Module]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recorder-{name}"));
    let put = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        // What has not changed is not built again.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(&path, text).expect("a new file");
        }
    };
    // What lies in the tree stands for itself, but for the facade: its runtime would be built anew, for nothing.
    let tree = root().display();
    let package = |name: &str, edition: u32, more: &str, dependencies: &[&str]| {
        let mut manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n{more}\n[dependencies]\n"
        );
        for dependency in dependencies {
            let (name, path) = dependency.split_once(' ').unwrap_or((dependency, dependency));
            let _ = writeln!(manifest, "{name}.path = \"{path}\"");
        }
        manifest
    };
    let dsl = format!("quadrille-dsl {tree}/dsl");
    let profile =
        "[workspace]\n[profile.dev.package]\nquadrille-compiler.opt-level = 3\nquadrille-dsl.opt-level = 3";
    let all = [&dsl[..], "quadrille facade", "unchecked", "older"];
    put("Cargo.toml", &package(&format!("compare-{name}"), 2024, profile, &all));
    put("Cargo.lock", &read(&root().join("Cargo.lock")));
    put("unchecked/Cargo.toml", &package("unchecked", 2024, "[lib]\nproc-macro = true", &[&dsl]));
    put("unchecked/src/lib.rs", include_str!("unchecked.rs"));
    let parts =
        [&format!("quadrille-compiler {tree}/compiler")[..], &format!("quadrille-macros {tree}/dsl/macros")];
    put("facade/Cargo.toml", &package("quadrille", 2024, "", &parts));
    put("facade/src/lib.rs", include_str!("facade.rs"));
    put("facade/src/private.rs", include_str!("../../src/private.rs"));
    put("older/Cargo.toml", &package("older", 2021, "", &["quadrille ../facade"]));
    let mut main = String::from(include_str!("compare.rs"));
    let mut older = String::from("//! The programs in an older edition.\n");
    let mut calls = String::new();
    for (i, module) in modules.iter().enumerate() {
        let calls_of = |names: &[String]| names.iter().map(|name| format!("{name}(), ")).collect::<String>();
        let list = format!(
            "#[allow(dead_code)] pub(crate) fn all_of_them() -> ::std::vec::Vec<::quadrille::Collective> {{ ::std::vec![{}] }}\n",
            calls_of(&module.names)
        );
        let lints = if module.clean { "#[deny(warnings)]\n" } else { "#[allow(warnings)]\n" };
        put(&format!("src/module{i}.rs"), &format!("{}\n{list}", module.text));
        let _ = writeln!(main, "{lints}mod module{i};");
        if module.clean {
            put(&format!("older/src/module{i}.rs"), &format!("{}\n{list}", module.text));
            let _ = writeln!(older, "{lints}mod module{i};");
        }
        let _ = writeln!(
            calls,
            "    count({:?}, include_str!(\"module{i}.rs\"), module{i}::all_of_them(), {});",
            module.shown, module.largest
        );
    }
    let _ = writeln!(
        main,
        "\nfn main() {{\n    let (mut programs, mut refused) = (0, 0);\n    let mut count = |path: &str, text: &str, \
         compiled: Vec<Collective>, largest: u32| {{\n        let (p, r) = compare(path, text, compiled, largest);\n        \
         programs += p;\n        refused += r;\n    }};\n{calls}    println!(\"agreed {{programs}} {{refused}}\");\n}}"
    );
    put("src/main.rs", &main);
    put("older/src/lib.rs", &older);
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--offline", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        // Where the workspace is built: most of what it needs is there already.
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(""))
        .output()
        .expect("cargo runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

/// Nothing differs, and at least so many runs gave a program, and so many findings.
fn agree(name: &str, modules: &[Module], programs: usize, refused: usize) {
    let printed = compare(name, modules);
    let (differences, last) = printed.trim_end().rsplit_once('\n').unwrap_or(("", printed.trim_end()));
    assert!(differences.is_empty(), "{differences}");
    let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(counts.len() == 2 && counts[0] >= programs && counts[1] >= refused, "{last}");
    println!("{last}");
}

#[test]
fn compiled_bodies_run_as_they_are_evaluated() {
    let mut modules = programs();
    modules.extend(rejected());
    modules.extend(randoms(1..4, 20));
    agree("tree", &modules, 300, 200);
}

#[test]
#[ignore = "builds for minutes"]
fn many_random_bodies_run_as_they_are_evaluated() {
    agree("random", &randoms(100..130, 20), 500, 500);
}
