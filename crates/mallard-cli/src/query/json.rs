//! Rewrites SQL so that DuckDB writes every number in its rows as a JSON number.
//!
//! The JSON mode of DuckDB's shell puts numbers of 128 bits, unsigned 64-bit numbers and decimals
//! into quotes, so a sum of integers would become a string. DuckDB's own function `to_json` writes
//! the digits of these numbers, and the shell writes a value of type JSON unchanged.

/// The text before a statement that returns rows. NaN and the infinities become NULL, because JSON
/// has no numbers for them.
const BEFORE: &str = "SELECT CASE WHEN typeof(COLUMNS(*)) IN ('FLOAT', 'DOUBLE') \
     AND CAST(COLUMNS(*) AS VARCHAR) IN ('nan', 'inf', '-inf') THEN NULL ELSE to_json(COLUMNS(*)) END FROM (\n";
/// The text after the statement, on a separate line, because the statement may end in a comment.
const AFTER: &str = "\n);\n";

/// The statements that return rows and are allowed in a FROM clause.
const QUERIES: [&str; 11] = [
    "SELECT",
    "FROM",
    "WITH",
    "VALUES",
    "TABLE",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "SUMMARIZE",
    "PIVOT",
    "UNPIVOT",
];
/// The statements that may follow WITH and are not allowed in a FROM clause.
const CHANGES: [&str; 4] = ["INSERT", "UPDATE", "DELETE", "MERGE"];

/// Returns the SQL, changed so that the values of each query have the type JSON. Other statements,
/// and commands of the shell, stay as they are.
pub fn with_json_values(sql: &str) -> String {
    let (mut text, mut rest) = (String::new(), sql);
    while !rest.is_empty() {
        let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let is_shell_command = rest.starts_with('.') && (text.is_empty() || text.ends_with('\n'));
        let statement = match is_shell_command {
            true => Statement { bytes: line, is_query: false },
            false => Statement::at_start_of(rest),
        };
        let (first, others) = rest.split_at(statement.bytes);
        match statement.is_query {
            true => {
                let query = first.strip_suffix(';').unwrap_or(first);
                text.extend([BEFORE, query, AFTER]);
                // `AFTER` already ends with a line break, so that a shell command can follow.
                rest = others.strip_prefix('\n').unwrap_or(others);
            }
            false => {
                text += first;
                rest = others;
            }
        }
    }
    text
}

/// Removes the line numbers from an error message, because the line of `BEFORE` makes them too
/// large.
pub fn without_line_numbers(message: &str) -> String {
    let mut indent = 0;
    let mut lines = Vec::new();
    for line in message.lines() {
        let cut = line.starts_with("LINE ").then(|| line.find(": ")).flatten();
        // The next line marks the place of the error, so it is cut by the same number of
        // characters.
        let begin = cut.map_or(std::mem::take(&mut indent), |at| at + 2);
        indent = cut.map_or(0, |at| at + 2);
        lines.push(line.get(begin..).unwrap_or(line));
    }
    lines.join("\n")
}

/// The statement at the start of a text, with its semicolon. White space before the first
/// statement, and after the last statement, counts as a statement that is not a query.
struct Statement {
    bytes: usize,
    is_query: bool,
}

impl Statement {
    fn at_start_of(sql: &str) -> Statement {
        let (mut bytes, mut depth) = (0, 0);
        let mut words: Vec<String> = Vec::new(); // the first word, and those outside of parentheses
        while bytes < sql.len() {
            let token = &sql[bytes..bytes + token_bytes(&sql[bytes..])];
            let is_space = token.starts_with(char::is_whitespace);
            if is_space && bytes == 0 {
                return Statement { bytes: token.len(), is_query: false };
            }
            bytes += token.len();
            match token {
                ";" => break,
                "(" => depth += 1,
                ")" => depth -= 1,
                word if word.starts_with(is_of_word) && (depth == 0 || words.is_empty()) => {
                    words.push(word.to_ascii_uppercase());
                }
                _ => {}
            }
        }
        let first = words.first().map_or("", String::as_str);
        let changes = words.iter().any(|word| CHANGES.contains(&word.as_str()));
        let is_query = QUERIES.contains(&first) && !(first == "WITH" && changes);
        Statement { bytes, is_query }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the first word, quoted text, comment or white space of some SQL. Any other
/// character is a token by itself. A doubled quote in a quoted text ends one token and begins the
/// next.
fn token_bytes(sql: &str) -> usize {
    let after = |begin: usize, end: &str| {
        sql[begin..].find(end).map_or(sql.len(), |at| begin + at + end.len())
    };
    let while_in = |is_in: fn(char) -> bool| sql.find(|c| !is_in(c)).unwrap_or(sql.len());
    match sql.as_bytes() {
        [b'\'', ..] => after(1, "'"),
        [b'"', ..] => after(1, "\""),
        [b'-', b'-', ..] => after(2, "\n"),
        [b'/', b'*', ..] => comment_bytes(sql),
        [b'e' | b'E', b'\'', ..] => escaped_bytes(sql),
        [b'$', ..] => {
            let tag = 1 + sql[1..].find(|c| !is_of_word(c)).unwrap_or(0);
            match sql[tag..].starts_with('$') {
                true => after(tag + 1, &sql[..=tag]), // $tag$ ... $tag$
                false => 1,
            }
        }
        _ if sql.starts_with(is_of_word) => while_in(|c| is_of_word(c) || c == '$'),
        _ if sql.starts_with(char::is_whitespace) => while_in(char::is_whitespace),
        _ => sql.chars().next().map_or(0, char::len_utf8),
    }
}

/// Returns the length of a comment, which may contain other comments.
fn comment_bytes(sql: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < sql.len() {
        match &sql.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    sql.len()
}

/// Returns the length of a text such as `E'it\'s'`.
fn escaped_bytes(sql: &str) -> usize {
    let mut is_escaped = false;
    let end = sql.bytes().enumerate().skip(2).find(|&(_, byte)| {
        let ends = byte == b'\'' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(sql.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the queries of some SQL, and the rest.
    fn parts(sql: &str) -> (Vec<String>, String) {
        let (mut queries, mut rest) = (Vec::new(), String::new());
        for part in with_json_values(sql).split(BEFORE) {
            match part.split_once(AFTER) {
                Some((query, after)) => {
                    queries.push(query.to_string());
                    rest += after;
                }
                None => rest += part,
            }
        }
        (queries, rest)
    }

    #[test]
    fn each_sql_statement_is_found_whatever_its_strings_and_comments_contain() {
        for query in [
            "SELECT 1",
            "select ';' AS \"a;b\", 'it''s;'",
            "FROM sites",
            "(SELECT 1) UNION ALL SELECT 2",
            "SELECT 1 -- no end; here",
            "SELECT /* a; /* b; */ c; */ 1",
            "SELECT E'it\\'s;' || e'\\\\'",
            "SELECT $$;$$, $tag$ ; $$ ; $tag$ AS a$b",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "SHOW TABLES",
            "SELECT 'ünïcode;' AS ü",
        ] {
            for sql in [query.to_string(), format!("{query}\n;"), format!("-- b;\n{query}\n;\n")] {
                let (queries, _) = parts(&sql);
                assert_eq!(queries.len(), 1, "{sql}: {queries:?}");
                assert!(queries[0].trim_end().ends_with(query), "{sql}: {queries:?}");
            }
        }
        let (queries, rest) = parts("SELECT 1; SELECT 2;\nSELECT 3");
        assert_eq!(
            (queries, rest.trim()),
            (["1", "2", "3"].map(|n| format!("SELECT {n}")).to_vec(), "")
        );
    }

    #[test]
    fn other_statements_and_shell_commands_are_left_unchanged() {
        for sql in [
            "",
            " \n",
            "-- a comment",
            "CREATE TABLE a AS SELECT 1;",
            "SET threads = 1; PRAGMA version;\n",
            "WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a;",
            ".output out.csv\n.shell echo 'SELECT 1'\n",
            "SELEKT 1",
            "'",
            "$",
            "/*",
            "e'",
        ] {
            assert_eq!(with_json_values(sql), sql);
        }
        let (queries, rest) = parts("SELECT 1;\n.output out.csv\nSELECT 2");
        assert_eq!((queries.len(), rest.trim()), (2, ".output out.csv"));
    }

    #[test]
    fn an_sql_error_shows_the_line_that_the_user_wrote_without_a_line_number() {
        let message = "Candidates: \"a\"\n\nLINE 2: SELECT b\n               ^\nmore";
        let expected = "Candidates: \"a\"\n\nSELECT b\n       ^\nmore";
        assert_eq!(without_line_numbers(message), expected);
    }
}
