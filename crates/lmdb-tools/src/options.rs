//! Arguments as `getopt` reads them: letters, together or apart, some with a value.

use crate::{Result, Stop};

/// What a program was called with.
pub(crate) struct Options {
    /// Letters in their order, with their values.
    given: Vec<(char, String)>,
    /// The rest.
    pub(crate) paths: Vec<String>,
}

impl Options {
    /// Reads `arguments`; `letters` lists what there can be, a colon after those with a value.
    /// Options may follow paths, unless `letters` begins with a plus sign: then all that follows the
    /// first path is one.
    pub(crate) fn parse(
        arguments: &[String],
        letters: &str,
        usage: &'static str,
    ) -> Result<Options> {
        let mut options = Options { given: Vec::new(), paths: Vec::new() };
        let first = letters.starts_with('+');
        let wrong =
            |what: String| if first { Stop::Usage(usage) } else { Stop::Option(what, usage) };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let cluster = argument.strip_prefix('-').filter(|cluster| !cluster.is_empty());
            let Some(cluster) = cluster.filter(|_| !first || options.paths.is_empty()) else {
                options.paths.push(argument.clone());
                continue;
            };
            if cluster == "-" {
                options.paths.extend(rest.by_ref().cloned());
                break;
            }
            for (i, letter) in cluster.char_indices() {
                let known = letters.find(letter).filter(|_| !":+".contains(letter));
                let Some(at) = known else {
                    return Err(wrong(format!("invalid option -- '{letter}'")));
                };
                if !letters[at + 1..].starts_with(':') {
                    options.given.push((letter, String::new()));
                    continue;
                }
                // The rest of the cluster, or the next argument.
                let value = match &cluster[i + letter.len_utf8()..] {
                    "" => match rest.next() {
                        Some(value) => value.clone(),
                        None => {
                            let what = format!("option requires an argument -- '{letter}'");
                            return Err(wrong(what));
                        }
                    },
                    value => value.to_string(),
                };
                options.given.push((letter, value));
                break;
            }
        }
        Ok(options)
    }

    /// How often a letter was given.
    pub(crate) fn count(&self, letter: char) -> usize {
        self.given.iter().filter(|(given, _)| *given == letter).count()
    }

    pub(crate) fn has(&self, letter: char) -> bool {
        self.count(letter) > 0
    }

    /// The value that was given last.
    pub(crate) fn value(&self, letter: char) -> Option<&str> {
        self.given.iter().rev().find(|(given, _)| *given == letter).map(|(_, value)| value.as_str())
    }

    /// The only path.
    pub(crate) fn path(&self, usage: &'static str) -> Result<&str> {
        match &self.paths[..] {
            [path] => Ok(path),
            _ => Err(Stop::Usage(usage)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Option<Options> {
        let arguments: Vec<String> = arguments.iter().map(|a| a.to_string()).collect();
        Options::parse(&arguments, "Vfrs:", "").ok()
    }

    #[test]
    fn letters_stand_together_or_apart() {
        let options = parse(&["-rf", "-r", "-sname", "-s", "other", "path"]).expect("all known");
        assert_eq!((options.count('r'), options.count('f'), options.count('V')), (2, 1, 0));
        assert_eq!(options.value('s'), Some("other"));
        assert_eq!(options.path("").ok(), Some("path"));
    }

    #[test]
    fn options_follow_paths_where_they_may() {
        let options = parse(&["path", "-f", "-s", "name"]).expect("all known");
        assert_eq!((options.value('s'), options.path("").ok()), (Some("name"), Some("path")));
        let arguments = ["-c", "from", "-c"].map(String::from);
        let options = Options::parse(&arguments, "+c", "").ok().expect("all known");
        assert_eq!(
            (options.count('c'), &options.paths[..]),
            (1, &["from", "-c"].map(String::from)[..])
        );
    }

    #[test]
    fn what_is_unknown_or_lacks_a_value_is_refused() {
        assert!(parse(&["-x"]).is_none());
        assert!(parse(&["-s"]).is_none());
        assert!(parse(&["-:"]).is_none());
        assert!(parse(&["-+"]).is_none());
        let dashes = parse(&["--", "-f"]).expect("a path");
        assert_eq!(dashes.paths, ["-f"]);
    }
}
