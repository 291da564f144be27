<?php
// Uses strings in all encodings: search, comparison, formats, dates, and dictionaries.

const LANGUAGES = [
    'Falsches Üben von Xylophonmusik quält jeden größeren Zwerg.',
    'Voix ambiguë d’un cœur qui au zéphyr préfère les jattes de kiwis.',
    'Съешь же ещё этих мягких французских булок, да выпей чаю.',
    'いろはにほへと ちりぬるを わかよたれそ つねならむ',
    'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.',
    '敏捷的棕色狐狸跳过了懒狗 👩‍👩‍👧 e' . "\u{301}",
];

return [
    'standard' => function (int $round) {
        $text = text($round);
        $results = [soundex($text), metaphone(substr($text, 0, 50)), levenshtein('kitten', "sitting$round"),
                    similar_text(substr($text, 0, 90), 'fox'), array_slice(str_word_count($text, 1), 0, 9)];
        $results[] = unserialize(serialize(tree(5)));
        $results[] = [ucwords($text), lcfirst(strrev($text)), wordwrap($text, 40, "\n", true),
            nl2br("a\nb$round"),
                      chunk_split(base64_encode($text), 76),
                          strtr($text, ['quick' => 'slow', 'fox' => 'snail'])];
        $results[] = [str_pad("$round", 200, '-=', STR_PAD_BOTH), substr_count($text, 'fox'),
            ucfirst(trim("  $text ")),
                      str_replace(['a', 'e', 'i'], ['1', '2'], $text, $count), $count,
                      substr_replace($text, 'XXX', 5, -5), count_chars($text, 3), strpbrk($text, 'q')];
        $results[] = [htmlspecialchars_decode(htmlspecialchars("<a href='x'>$text & more</a>")),
                      html_entity_decode('&euml;&#8364;&lt;'), strip_tags("<p>$text</p><br/>", '<br>'),
                      addcslashes($text, 'a..f'), stripslashes(addslashes("O'$round")),
                          quotemeta("1+1=$round?")];
        $results[] = [sprintf('%05d|%-10s|%+.3e|%x|%b|%\'*12s|%2$s', $round, "n$round", M_PI * $round, 255,
            $round, 'end'),
                      vsprintf('%2$s-%1$04d', [$round, 'x']), sscanf("12 apples $round", '%d %s %d'),
                      number_format(1234567.891 * $round, 2, ',', '.'), money($round)];
        $results[] = [md5($text), sha1($text), crc32($text), bin2hex(substr($text, 0, 40)),
            strlen(uniqid('', true)),
                      quoted_printable_decode(quoted_printable_encode("=äöü$text")) === "=äöü$text",
                      convert_uudecode(convert_uuencode($text)) === $text, str_rot13($text)];
        parse_str("a[]=1&a[]=2&b[c]=$round&d=%20x", $query);
        $results[] = [$query, http_build_query($query), parse_url("https://u:p@host:81/path/$round?q=1#f"),
                      urldecode(rawurlencode($text)) === $text];
        $results[] = [unpack('Nlong/vshort/a4text/q', pack('Nva4q', $round, 513, 'abcd', -$round)),
                      implode(',', str_split(substr($text, 0, 100), 7)), explode(' ', $text, 5),
                          similar_text('a', 'b')];
        $parts = '';
        for ($i = 0; $i < 2000; ++$i)
            $parts .= chr(65 + $i % 26) . str_repeat('.', $i % 5);
        $token = strtok($parts, '.');
        $tokens = 0;
        while ($token !== false) {
            ++$tokens;
            $token = strtok('.');
        }
        $results[] = [strlen($parts), $tokens,
            password_verify('secret', crypt('secret', '$5$rounds=1000$salt'))];
        $results[] = version_compare('8.2.1', '8.10.0') . fdiv(1, 0) . intdiv(7,
            2) . round(2.5) . base_convert('ff', 16, 2);
        return $results;
    },
    'ctype' => fn(int $round) => [ctype_alnum("a$round"), ctype_upper(text($round)), ctype_space(" \n"),
                                  ctype_xdigit(md5("$round")), ctype_punct('?!')],
    'pcre' => function (int $round) {
        $text = text($round);
        preg_match_all('/(\w+) (?<last>\w+)/u', $text, $found, PREG_SET_ORDER | PREG_OFFSET_CAPTURE);
        $results = [count($found), $found[0]];
        $results[] = preg_replace_callback('/o(.)/', fn($match) => strtoupper($match[1]), $text);
        $results[] = preg_replace_callback_array(['/\d+/' => fn($m) => $m[0] * 2,
            '/fox/i' => fn($m) => '<fox>'], $text);
        $results[] = preg_split('/[\s:]+/', $text, 20, PREG_SPLIT_DELIM_CAPTURE | PREG_SPLIT_NO_EMPTY);
        $results[] = preg_match('/^(\((?:[^()]|(?1))*\))$/',
            str_repeat('(', 50) . str_repeat(')', 50)); // deep recursion
        $results[] = [preg_match('/(?<=quick )brown(?! bear)/', $text), preg_quote("a.b*c$round"),
                      preg_grep('/^\d+$/', ['1', 'a', "$round"], PREG_GREP_INVERT)];
        $results[] = [@preg_match('/(?:a+)+$/', str_repeat('a', 30) . 'b'),
            preg_last_error_msg()]; // backtracking up to the limit
        $results[] = [@preg_match('/(unclosed/', 'x'), preg_match('/\p{Cyrillic}+/u', LANGUAGES[2], $word),
            $word];
        for ($i = 0; $i < 100; ++$i) // fills the cache of compiled expressions
            $results[] = preg_match("/x{{$i}}y[$round]z?/", str_repeat('x', $i) . "y$round");
        return $results;
    },
    'mbstring' => function (int $round) {
        $results = [];
        foreach (LANGUAGES as $text) {
            $text = str_repeat($text, $round + 1);
            $results[] = [mb_strlen($text), mb_strtoupper($text), mb_convert_case($text, MB_CASE_TITLE),
                mb_strwidth($text),
                          mb_substr($text, 5, 20), mb_strimwidth($text, 0, 30, '…'),
                              count(mb_str_split($text, 3)),
                          mb_strrev($text), mb_detect_encoding($text, ['ASCII', 'UTF-8'], true),
                              mb_substr_count($text, ' ')];
            foreach (['UTF-16', 'UTF-32LE', 'UTF-7', 'SJIS', 'EUC-JP', 'KOI8-R', 'ISO-8859-7', 'GB18030',
                'BASE64', 'HTML'] as $encoding)
                $results[] = md5(@mb_convert_encoding($text, $encoding, 'UTF-8'));
            $results[] = [mb_encode_mimeheader(mb_substr($text, 0, 60), 'UTF-8', 'Q'),
                mb_decode_numericentity(
                mb_encode_numericentity($text, [0x80, 0x10FFFF, 0, 0x1FFFFF]),
                    [0x80, 0x10FFFF, 0, 0x1FFFFF]) === $text];
        }
        if (function_exists('mb_ereg_replace')) {
            mb_regex_encoding('UTF-8');
            mb_ereg_search_init(LANGUAGES[1], '\w+');
            while ($place = mb_ereg_search_pos())
                $results[] = $place;
            $results[] = mb_ereg_replace_callback('[aeiou]', fn($m) => "<$m[0]>", text($round % 3));
        }
        return $results;
    },
    'iconv' => function (int $round) {
        $results = [];
        foreach (LANGUAGES as $text) {
            foreach (['UTF-16LE', 'UCS-4', 'UTF-7', 'ISO-8859-1//TRANSLIT', 'ASCII//IGNORE',
                'EUC-JP//IGNORE'] as $encoding)
                $results[] = md5((string)@iconv('UTF-8', $encoding, str_repeat($text, $round + 1)));
            $results[] = [iconv_strlen($text, 'UTF-8'), iconv_substr($text, 3, 9, 'UTF-8'),
                iconv_strrpos($text, ' ', 'UTF-8'),
                          iconv_mime_decode(iconv_mime_encode('Subject', $text), 0, 'UTF-8')];
        }
        return $results;
    },
    'intl' => function (int $round) {
        $results = [];
        $words = array_merge(...array_map(fn($text) => preg_split('/\PL+/u', $text), LANGUAGES));
        foreach (['de_DE', 'sv_SE', 'ja_JP'] as $locale) {
            (new Collator($locale))->sort($words);
            $results[] = $words;
            $results[] = [(new NumberFormatter($locale, NumberFormatter::SPELLOUT))->format(1234 + $round),
                          (new NumberFormatter($locale,
                              NumberFormatter::CURRENCY))->formatCurrency(99.5 * $round, 'EUR'),
                          (new IntlDateFormatter($locale, IntlDateFormatter::FULL, IntlDateFormatter::FULL,
                              'UTC'))
                              ->format(86400 * 365 * $round),
                          Locale::getDisplayLanguage('fr', $locale),
                          MessageFormatter::formatMessage($locale,
                              '{0, plural, one {# file} other {# files}} by {1}', [$round, 'me'])];
        }
        foreach (LANGUAGES as $text) {
            $results[] = [Normalizer::normalize($text, Normalizer::FORM_D), grapheme_strlen($text),
                          transliterator_transliterate('Any-Latin; Latin-ASCII; Lower()', $text)];
            $breaks = IntlBreakIterator::createWordInstance('en');
            $breaks->setText($text);
            $results[] = iterator_count($breaks->getPartsIterator());
        }
        $calendar = IntlCalendar::createInstance('UTC', 'fa_IR@calendar=persian');
        $calendar->setTime(1.7e12 + $round * 1e9);
        $results[] = [$calendar->get(IntlCalendar::FIELD_YEAR), idn_to_ascii("bücher$round.example"),
            IntlChar::charName('ß'),
                      (new Spoofchecker)->isSuspicious('pаypal')];
        return $results;
    },
    'date' => function (int $round) {
        $day = new DateTimeImmutable('2024-01-31 12:00', new DateTimeZone('UTC'));
        $results = [$day->modify("+$round months")->format(DATE_ATOM),
                    iterator_count(new DatePeriod($day, new DateInterval('P1D'), 10 + $round))];
        foreach (array_slice(DateTimeZone::listIdentifiers(), $round * 20, 20) as $name) {
            $zone = new DateTimeZone($name);
            $results[] = [$zone->getOffset($day), count($zone->getTransitions(0, 1700000000)) > 0,
                          $day->setTimezone($zone)->format('l jS F Y H:i:s T')];
        }
        $difference = $day->diff(new DateTime("@" . 1e9 + $round * 12345678));
        $results[] = [$difference->format('%R %y-%m-%d %h:%i:%s'), $difference->days,
            date_parse("$round May 2020 noon"),
                      DateTime::createFromFormat('d/m/Y', '31/12/1999')->format('N W o'),
                          checkdate(2, 30, 2000)];
        return $results;
    },
    'calendar' => fn(int $round) => [jdtogregorian(2460000 + $round), easter_days(2000 + $round),
        cal_info(CAL_JEWISH),
                                     jdtojewish(2460000 + $round),
                                         cal_days_in_month(CAL_GREGORIAN, 2, 2000 + $round)],
    'gettext' => fn(int $round, string $folder) => [bindtextdomain('none', $folder) === realpath($folder),
                                                    gettext("text $round"), ngettext('one', 'many', $round)],
    'pspell' => function (int $round) {
        $dictionary = @pspell_new('en');
        return $dictionary ? [pspell_check($dictionary, 'malloc'),
            pspell_suggest($dictionary, "allocatr")] : 'no dictionary';
    },
    'enchant' => function (int $round) {
        $broker = enchant_broker_init();
        if (!enchant_broker_dict_exists($broker, 'en_US'))
            return 'no dictionary';
        $dictionary = enchant_broker_request_dict($broker, 'en_US');
        return [enchant_dict_check($dictionary, 'memory'),
            $round ?: enchant_dict_suggest($dictionary, 'memry')];
    },
    'mailparse' => function (int $round) {
        $mail = mailparse_msg_create();
        mailparse_msg_parse($mail,
            "From: a@example.org\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\n" . text($round) .
                                   "\r\n--x\r\nContent-Type: text/html\r\n\r\n<p>\r\n--x--\r\n");
        return [mailparse_msg_get_structure($mail), mailparse_rfc822_parse_addresses('A <a@b.org>, c@d.org')];
    },
];

/** Formats an amount as a bank does. */
function money(int $amount): string
{
    return strrev(implode('.', str_split(strrev((string)($amount * 98765432)), 3)));
}

/** Reverses a text by characters. */
function mb_strrev(string $text): string
{
    return implode('', array_reverse(mb_str_split($text)));
}
