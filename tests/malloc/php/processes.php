<?php
// Uses processes: forks, signals, shared memory, messages, sockets, and clients of servers.

return [
    'pcntl' => function (int $round) {
        if (!extension_loaded('posix'))
            return 'no signals';
        $held = array_map(fn($i) => str_repeat('h', $i * 10), range(0, 300));
        $children = [];
        for ($i = 0; $i < 3; ++$i) {
            $child = pcntl_fork();
            if ($child === 0) { // A signal ends the child, so that it runs no destructors and prints nothing.
                $in_the_child = json_encode(tree(6));
                array_splice($held, 0, 150);
                posix_kill(posix_getpid(),
                    strlen($in_the_child) > 100 && count($held) === 151 ? SIGKILL : SIGTERM);
            }
            $children[] = $child;
        }
        $held = null;
        $signals = [];
        foreach ($children as $child) {
            pcntl_waitpid($child, $status);
            $signals[] = pcntl_wtermsig($status);
        }
        pcntl_async_signals(true);
        $got = [];
        pcntl_signal(SIGUSR1, function (int $signal) use (&$got) { $got[] = str_repeat("signal $signal ",
            10); });
        for ($i = 0; $i < 20; ++$i)
            posix_kill(posix_getpid(), SIGUSR1);
        pcntl_signal(SIGUSR1, SIG_DFL);
        return [$signals, count($got), pcntl_sigprocmask(SIG_BLOCK, [])];
    },
    'posix' => fn(int $round) => [posix_getuid() === getmyuid() || true, posix_strerror(2 + $round),
        is_array(posix_times()),
                                  posix_getpwuid(0)['name'], posix_getgrgid(0)['name'],
                                      posix_uname()['sysname'], posix_isatty(99)],
    'sockets' => function (int $round) {
        socket_create_pair(AF_UNIX, SOCK_STREAM, 0, $pair);
        socket_write($pair[0], substr(text($round), 0, 1000));
        $results = [socket_read($pair[1], 2000)];
        socket_sendmsg($pair[0], ['iov' => ['one', str_repeat('two', $round + 1)]]);
        $message = ['name' => [], 'buffer_size' => 2000, 'controllen' => 100];
        $results[] = [socket_recvmsg($pair[1], $message), $message['iov']];
        $read = [$pair[1]];
        $results[] = [socket_select($read, $none, $none, 0),
            socket_get_option($pair[0], SOL_SOCKET, SO_TYPE)];
        $server = socket_create_listen(0);
        socket_getsockname($server, $address, $port);
        $client = stream_socket_client("tcp://127.0.0.1:$port");
        $accepted = socket_accept($server);
        fwrite($client, "line $round\n");
        $results[] = socket_read($accepted, 100, PHP_NORMAL_READ);
        socket_write($accepted, 'answer');
        socket_close($accepted);
        $results[] = [stream_get_contents($client),
            @stream_socket_client('tcp://' . NO_SERVER . ':' . NO_PORT, $code, $reason), $reason];
        return $results;
    },
    'shmop' => function (int $round) {
        $shared = @shmop_open(getmypid() * 100 + $round, 'c', 0600, 4096);
        if ($shared === false)
            return 'none';
        shmop_write($shared, text($round), 0);
        return [shmop_read($shared, 0, 20), shmop_size($shared), shmop_delete($shared)];
    },
    'sysvmsg' => function (int $round) {
        $queue = @msg_get_queue(getmypid() * 100 + $round, 0600);
        $message = null;
        if ($queue !== false && @msg_send($queue, 1, [$round, substr(text($round), 0, 100)]))
            msg_receive($queue, 1, $type, 10000, $message);
        if ($queue !== false)
            msg_remove_queue($queue);
        return $message;
    },
    'sysvsem' => function (int $round) {
        $semaphore = @sem_get(getmypid() * 100 + $round);
        return $semaphore === false ? 'none' : [sem_acquire($semaphore), sem_release($semaphore),
            sem_remove($semaphore)];
    },
    'sysvshm' => function (int $round) {
        $variables = @shm_attach(getmypid() * 100 + 50 + $round, 100000);
        if ($variables === false)
            return 'none';
        shm_put_var($variables, 1, [$round, text($round)]);
        shm_put_var($variables, 2, tree(3));
        shm_remove_var($variables, 2);
        return [shm_get_var($variables, 1), shm_has_var($variables, 2), shm_remove($variables)];
    },
    'readline' => fn(int $round) => [readline_add_history("line $round"), function_exists('readline'),
        is_array(readline_info())],
    'curl' => function (int $round, string $folder) {
        file_put_contents("$folder/page", text($round));
        $all = curl_multi_init();
        $handles = [];
        for ($i = 0; $i < 10; ++$i) {
            $handles[$i] = curl_init($i % 3 ? "file://$folder/page" : 'http://' . NO_SERVER . ':' . NO_PORT . "/$i");
            curl_setopt_array($handles[$i],
                [CURLOPT_RETURNTRANSFER => true, CURLOPT_HTTPHEADER => ["X-Number: $i"],
                CURLOPT_TIMEOUT => 9, CURLOPT_PROXY => '',
                                             CURLOPT_POSTFIELDS => $i === 3 ? ['a' => str_repeat('b', $i),
                                                 'f' => new CURLFile(__FILE__)] : null,
                                             CURLOPT_PRIVATE => "number $i"]);
            curl_multi_add_handle($all, $handles[$i]);
        }
        do {
            curl_multi_exec($all, $running);
            curl_multi_select($all, 0.1);
        } while ($running > 0);
        $results = [];
        while ($done = curl_multi_info_read($all))
            $results[curl_getinfo($done['handle'], CURLINFO_PRIVATE)] = curl_strerror($done['result']);
        ksort($results);
        $results[] = md5(curl_multi_getcontent($handles[1]));
        $read = '';
        $one = curl_init("file://$folder/page");
        curl_setopt($one, CURLOPT_WRITEFUNCTION,
            function ($handle, $data) use (&$read) { $read .= $data; return strlen($data); });
        $results[] = [curl_exec($one), strlen($read), curl_escape($one, "a b&$round"),
            curl_getinfo($one)['url'] === "file://$folder/page"];
        unlink("$folder/page");
        return $results;
    },
    'ftp' => fn(int $round) => @ftp_connect(NO_SERVER, NO_PORT, 1) === false,
];
