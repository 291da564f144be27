<?php
// Uses data formats, databases in a file or in memory, and sessions.

/** Returns data of all types. */
function mixture(int $round): array
{
    return ['tree' => json_decode(json_encode(tree(5)), true), 'text' => text($round),
        'float' => M_PI * $round,
            'list' => range(0, 300 + $round), 'null' => null, 'empty' => [], 'flags' => [true, false],
            'umlaut ü' => "\u{1F600}\n\t\"\\"];
}

/** Fills a database, and returns the results of queries. */
function fill(PDO $data, int $rows): array
{
    $data->exec('create table t(a integer primary key, b text, c real, d blob)');
    $data->exec('create index tb on t(b)');
    $insert = $data->prepare('insert into t(b, c, d) values (:b, :c, :d)');
    $data->beginTransaction();
    for ($i = 0; $i < $rows; ++$i)
        $insert->execute(['b' => 'row ' . $i * 7919 % $rows, 'c' => $i / 3,
            'd' => str_repeat("\0$i", $i % 40)]);
    $data->commit();
    $data->beginTransaction();
    $data->exec('delete from t');
    $data->rollBack();
    $select = $data->prepare('select b, c, length(d) as n from t where b like ? order by b limit ?');
    $results = [];
    foreach (['row 1%', 'row 2%', '%9'] as $like) {
        $select->execute([$like, 20]);
        $results[] = $select->fetchAll(PDO::FETCH_ASSOC);
    }
    $results[] = $data->query('select substr(b, 1, 5), count(*) from t group by 1 order by 1')->fetchAll(PDO::FETCH_KEY_PAIR);
    $results[] = count($data->query('select * from t')->fetchAll(PDO::FETCH_CLASS, stdClass::class));
    return $results;
}

return [
    'json' => function (int $round) {
        $data = mixture($round);
        $results = [json_encode(tree(6)), json_decode(json_encode(range(0, 500 + $round)), true),
                    md5(json_encode($data, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE)),
                        json_decode(json_encode($data), true) == $data];
        foreach (['{"a":', '[1,]', "\"\x80\"", str_repeat('[', 600), '{"a":1}x'] as $broken) {
            json_decode($broken);
            $results[] = json_last_error_msg();
            $results[] = thrown(fn() => json_decode($broken, flags: JSON_THROW_ON_ERROR));
        }
        $results[] = [json_decode('12345678901234567890', flags: JSON_BIGINT_AS_STRING),
            json_encode("\x80", JSON_INVALID_UTF8_SUBSTITUTE)];
        return $results;
    },
    'igbinary' => fn(int $round) => [md5(igbinary_serialize(mixture($round))),
        igbinary_unserialize(igbinary_serialize(tree(6)))],
    'msgpack' => fn(int $round) => [md5(msgpack_pack(mixture($round))),
        msgpack_unpack(msgpack_pack(range(0, 900 + $round)))],
    'yaml' => fn(int $round) => [yaml_parse(yaml_emit(mixture($round))), @yaml_parse("a: [1, 2\nb: }"),
                                 yaml_parse("a: &x {k: [1, 2]}\nb: *x\nc: |\n  text\n  $round\n")],
    'session' => function (int $round, string $folder) {
        session_save_path($folder);
        session_id("s$round");
        @session_start(['use_cookies' => 0, 'cache_limiter' => '']);
        $_SESSION['data'] = range(0, $round * 10);
        $_SESSION['tree'] = tree(4);
        $encoded = session_encode();
        session_write_close();
        $length = strlen(file_get_contents("$folder/sess_s$round"));
        $_SESSION = [];
        @session_start(['use_cookies' => 0, 'cache_limiter' => '']);
        $read = $_SESSION;
        session_write_close();
        unlink("$folder/sess_s$round");
        return [$length, $encoded, $read];
    },
    'dba' => function (int $round, string $folder) {
        $results = [];
        foreach (array_intersect(dba_handlers(),
            ['flatfile', 'inifile', 'db4', 'qdbm', 'lmdb']) as $handler) {
            $path = "$folder/$handler.dba";
            $data = @dba_open($path, 'n', $handler);
            if ($data === false)
                continue;
            for ($i = 0; $i < 100; ++$i)
                dba_insert("key$i", str_repeat("v$i", $i + $round), $data);
            for ($i = 0; $i < 100; $i += 3)
                dba_delete("key$i", $data);
            dba_replace('key1', 'new', $data);
            $keys = [];
            for ($key = dba_firstkey($data); $key !== false; $key = dba_nextkey($data))
                $keys[] = $key;
            sort($keys);
            $results[$handler] = [$keys, dba_fetch('key1', $data), md5((string)dba_fetch('key98', $data)),
                dba_exists('key3', $data)];
            dba_close($data);
            array_map('unlink', glob("$path*"));
        }
        return $results;
    },
    'PDO' => fn(int $round) => [PDO::getAvailableDrivers(), thrown(fn() => new PDO('none:')),
        PDO::FETCH_ASSOC],
    'pdo_sqlite' => function (int $round) {
        $data = new PDO('sqlite::memory:');
        $results = fill($data, 300 + $round * 20);
        $results[] = [thrown(fn() => $data->exec('select nonsense')), $data->quote("O'Brien"),
            $data->lastInsertId()];
        $data->sqliteCreateFunction('twice', fn($text) => $text . $text, 1);
        $results[] = $data->query("select twice('ab'), twice(b) from t limit 3")->fetchAll(PDO::FETCH_NUM);
        return $results;
    },
    'sqlite3' => function (int $round, string $folder) {
        $data = new SQLite3("$folder/data.db");
        $data->enableExceptions(true);
        $data->exec('pragma journal_mode = memory; create table t(a, b)');
        $insert = $data->prepare('insert into t values (:a, :b)');
        $data->exec('begin');
        for ($i = 0; $i < 300 + $round; ++$i) {
            $insert->bindValue(':a', $i);
            $insert->bindValue(':b', str_repeat('b', $i % 300), $i % 2 ? SQLITE3_TEXT : SQLITE3_BLOB);
            $insert->execute();
        }
        $data->exec('commit');
        $data->createAggregate('longest',
            fn($context, $row, $text) => strlen($text) > strlen((string)$context) ? $text : $context,
                               fn($context, $rows) => strlen((string)$context));
        $data->createCollation('backwards', fn($a, $b) => strcmp(strrev($a), strrev($b)));
        $results = [$data->querySingle('select longest(b) from t'),
            $data->querySingle('select count(*), sum(a) from t', true),
                    thrown(fn() => $data->exec('no statement'))];
        $rows = $data->query("select cast(a as text) as x from t order by x collate backwards limit 30");
        while ($row = $rows->fetchArray(SQLITE3_ASSOC))
            $results[] = $row['x'];
        $results[] = $data->querySingle('with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) select sum(i) from n');
        $copy = new SQLite3(':memory:');
        $results[] = [$data->backup($copy), $copy->querySingle('select count(*) from t'), $copy->close(),
            $data->close()];
        unlink("$folder/data.db");
        return $results;
    },
    // Databases in a server: each client library prepares a connection, which fails.
    'mysqli' => function (int $round) {
        mysqli_report(MYSQLI_REPORT_OFF);
        return [@(new mysqli(NO_SERVER, 'user', 'word', 'data', NO_PORT))->connect_errno,
            mysqli_init() instanceof mysqli];
    },
    'mysqlnd' => fn(int $round) => extension_loaded('mysqli') ? strlen(mysqli_get_client_info()) > 0 : null,
    'pdo_mysql' => fn(int $round) => thrown(fn() => new PDO('mysql:host=' . NO_SERVER . ';port=' . NO_PORT)),
    'pgsql' => fn(int $round) => [@pg_connect('host=' . NO_SERVER . ' port=' . NO_PORT),
        pg_escape_string("O'$round")],
    'pdo_pgsql' => fn(int $round) => thrown(fn() => new PDO('pgsql:host=' . NO_SERVER . ';port=' . NO_PORT)),
    'odbc' => fn(int $round) => [@odbc_connect('none', 'user', 'word'), odbc_error()],
    'PDO_ODBC' => fn(int $round) => thrown(fn() => new PDO('odbc:none')),
    'redis' => fn(int $round) => thrown(fn() => (new Redis)->connect(NO_SERVER, NO_PORT, 1)),
    'ldap' => function (int $round) {
        $directory = ldap_connect('ldap://' . NO_SERVER . ':' . NO_PORT);
        return [@ldap_bind($directory), ldap_error($directory),
            ldap_explode_dn("cn=a$round,dc=example", 0), ldap_escape('a*b')];
    },
    'imap' => function (int $round) {
        $box = @imap_open('{' . NO_SERVER . ':' . NO_PORT . '/novalidate-cert}', 'user', 'word', 0, 1);
        imap_errors();
        return [$box, imap_rfc822_parse_adrlist('A <a@b.org>, c', 'example.org'),
            imap_utf8('=?ISO-8859-1?Q?Gr=FC=DFe?=')];
    },
    'snmp' => function (int $round) {
        $agent = new SNMP(SNMP::VERSION_2C, NO_SERVER . ':' . NO_PORT, 'public', 1000, 0);
        return [@$agent->get('1.3.6.1.2.1.1.1.0'), $agent->close()];
    },
];
