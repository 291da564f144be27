<?php
// Uses numbers of any size, random numbers, and numbers as keys of ciphers.

return [
    'standard' => function (int $round) {
        $results = [];
        for ($i = 1; $i < 50; ++$i)
            $results[] = [sqrt($i * $round), atan2($i, $round + 1), log1p($i), fmod($i * 7.5, 3),
                hypot($i, 2), (string)(0.1 * $i),
                          octdec(decoct($round)), dechex($i << $round), floor(-$i / 2), PHP_INT_MAX + $i,
                              is_nan(acos($i + 1))];
        return $results;
    },
    'bcmath' => function (int $round) {
        $sum = '0';
        for ($i = 1; $i < 60; ++$i)
            $sum = bcadd($sum, bcdiv('1', bcpow((string)$i, '2'), 50 + $round), 50 + $round);
        return [$sum, bcsqrt('2', 100), bcpowmod('7', '123456789', '1000000007'),
            bcmod('123456789012345678901', '97'),
                bccomp('1.001', '1.0001', 3), bcmul(str_repeat('9', 200 + $round), str_repeat('8', 150), 0)];
    },
    'gmp' => function (int $round) {
        $factorial = gmp_fact(200 + $round);
        $fibonacci = [gmp_init(0), gmp_init(1)];
        for ($i = 2; $i < 500; ++$i)
            $fibonacci[] = $fibonacci[$i - 1] + $fibonacci[$i - 2];
        $prime = gmp_nextprime('1000000000000000000' . $round);
        return [gmp_strval($factorial), (string)$fibonacci[499], (string)$prime, gmp_prob_prime($prime),
            gmp_strval(gmp_powm(3, $prime - 1, $prime)),
                gmp_strval(gmp_gcd($factorial, $fibonacci[300])),
                    gmp_strval(gmp_gcdext(240, 46 + $round)['s']), gmp_strval($factorial % 1009),
                gmp_strval($factorial >> 90, 36), gmp_hamdist(5, 9),
                    unserialize(serialize($prime)) == $prime, bin2hex(gmp_export($prime)),
                gmp_strval(gmp_sqrtrem($factorial)[1]), gmp_perfect_square(144),
                    thrown(fn() => gmp_init(1) / 0)];
    },
    'random' => function (int $round) {
        mt_srand($round);
        $results = [mt_rand(), array_sum(array_map(fn() => mt_rand(0, 100), range(1, 100)))];
        $cards = range(1, 52);
        shuffle($cards);
        $results[] = [$cards, array_rand(array_flip($cards), 5), str_shuffle('abcdefgh'),
            strlen(random_bytes(1000 + $round))];
        foreach ([new Random\Engine\Mt19937($round), new Random\Engine\PcgOneseq128XslRr64($round),
            new Random\Engine\Xoshiro256StarStar($round)] as $engine) {
            $random = new Random\Randomizer($engine);
            $results[] = [$random->getInt(1, 1000000), $random->shuffleArray(range(0, 50)),
                bin2hex($random->getBytes(100)),
                          $random->pickArrayKeys(range(0, 99), 3),
                              unserialize(serialize($engine)) == $engine];
        }
        return $results;
    },
    'hash' => function (int $round) {
        $text = text($round);
        $results = array_map(fn($algorithm) => hash($algorithm, $text), hash_algos());
        foreach (hash_hmac_algos() as $algorithm)
            $results[] = hash_hmac($algorithm, $text, "key $round");
        $parts = hash_init('sha512');
        foreach (str_split($text, 999) as $part)
            hash_update($parts, $part);
        $copy = hash_copy($parts);
        hash_update($copy, 'more');
        return [$results, hash_final($parts), hash_final($copy),
            hash_pbkdf2('sha256', 'word', 'salt', 100, 200), bin2hex(hash_hkdf('sha256', 'k', 99)),
                hash_file('md5', __FILE__) === md5_file(__FILE__), hash_equals('a', 'b')];
    },
    'openssl' => function (int $round) {
        $text = text($round);
        $key = hash('sha256', "key $round", true);
        $results = [];
        foreach (['aes-256-cbc', 'aes-128-ctr', 'aes-256-gcm', 'chacha20-poly1305',
            'camellia-256-cbc'] as $cipher) {
            if (!in_array($cipher, openssl_get_cipher_methods()))
                continue;
            $start = str_repeat("\1", openssl_cipher_iv_length($cipher));
            $tag = null;
            $sealed = preg_match('/gcm|poly/', $cipher) ? openssl_encrypt($text, $cipher, $key,
                OPENSSL_RAW_DATA, $start, $tag, 'beside')
                                                        : openssl_encrypt($text, $cipher, $key,
                                                            OPENSSL_RAW_DATA, $start);
            $results[] = [$cipher, md5($sealed), $tag === null ? '' : bin2hex($tag),
                          openssl_decrypt($sealed, $cipher, $key, OPENSSL_RAW_DATA, $start, $tag ?? '',
                              $tag === null ? '' : 'beside') === $text];
        }
        $results[] = [openssl_digest($text, 'sha3-256'), openssl_decrypt('nonsense', 'aes-256-cbc', $key,
            0, str_repeat("\1", 16))];
        if ($round < 3) { // With random keys, only the result of their use is the same in each run.
            $pair = openssl_pkey_new(['private_key_type' => OPENSSL_KEYTYPE_EC,
                'curve_name' => 'prime256v1']);
            openssl_sign($text, $signature, $pair, OPENSSL_ALGO_SHA256);
            $public = openssl_pkey_get_details($pair)['key'];
            $request = openssl_csr_new(['commonName' => "name$round", 'countryName' => 'DE'], $pair,
                ['digest_alg' => 'sha256']);
            $certificate = openssl_csr_sign($request, null, $pair, 30, ['digest_alg' => 'sha256'], 7);
            openssl_x509_export($certificate, $exported);
            $read = openssl_x509_parse($exported);
            openssl_pkcs12_export($certificate, $package, $pair, 'word');
            openssl_pkcs12_read($package, $opened, 'word');
            $results[] = [openssl_verify($text, $signature, $public, OPENSSL_ALGO_SHA256),
                openssl_verify("$text.", $signature, $public),
                          $read['subject'], $read['serialNumber'],
                              openssl_x509_check_private_key($certificate, $pair), count($opened)];
        }
        while (openssl_error_string() !== false)
            continue;
        return $results;
    },
    'sodium' => function (int $round) {
        $text = text($round);
        $key = hash('sha256', "key $round", true);
        $nonce = str_repeat("\1", SODIUM_CRYPTO_SECRETBOX_NONCEBYTES);
        $box = sodium_crypto_secretbox($text, $nonce, $key);
        $pair = sodium_crypto_sign_seed_keypair($key);
        $signed = sodium_crypto_sign($text, sodium_crypto_sign_secretkey($pair));
        $stream = sodium_crypto_generichash_init();
        sodium_crypto_generichash_update($stream, $text);
        $boxes = sodium_crypto_box_seed_keypair($key);
        return [md5($box), sodium_crypto_secretbox_open($box, $nonce, $key) === $text,
            sodium_crypto_secretbox_open("x$box", $nonce, $key), md5($signed),
                sodium_crypto_sign_open($signed, sodium_crypto_sign_publickey($pair)) === $text,
                    bin2hex(sodium_crypto_generichash_final($stream)),
                sodium_crypto_box_seal_open(sodium_crypto_box_seal($text,
                    sodium_crypto_box_publickey($boxes)), $boxes) === $text,
                sodium_bin2base64($key, SODIUM_BASE64_VARIANT_URLSAFE),
                    bin2hex(sodium_crypto_shorthash($text, substr($key, 0, 16))),
                sodium_unpad(sodium_pad("pad$round", 64), 64)];
    },
    'uuid' => fn(int $round) => [uuid_is_valid(uuid_create()), uuid_type(uuid_create(UUID_TYPE_RANDOM)),
        uuid_compare($uuid = uuid_create(), $uuid),
                                 bin2hex(uuid_parse('b691c99c-7fc5-11d8-9fa8-00065b896488'))],
    'filter' => fn(int $round) => [filter_var("user$round@example.org", FILTER_VALIDATE_EMAIL),
        filter_var("0x$round", FILTER_VALIDATE_INT, FILTER_FLAG_ALLOW_HEX),
                                   filter_var('http://[::1]/x', FILTER_VALIDATE_URL),
                                       filter_var("10.0.0.$round", FILTER_VALIDATE_IP,
                                       FILTER_FLAG_NO_PRIV_RANGE),
                                   filter_var_array(['a' => '1', 'b' => '<x>'],
                                       ['a' => FILTER_VALIDATE_INT, 'b' => FILTER_SANITIZE_SPECIAL_CHARS]),
                                   filter_var(['1', 'x'], FILTER_CALLBACK, ['options' => 'strtoupper']),
                                       filter_var('yes', FILTER_VALIDATE_BOOL)],
];
