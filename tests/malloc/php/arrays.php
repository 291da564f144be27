<?php
// Uses arrays, the structures of SPL, and those of the extensions ds and apcu.

/** Returns pseudo-random numbers that do not depend on the version of PHP. */
function lehmer(int $count, int $seed): array
{
    $numbers = [];
    for ($i = 0; $i < $count; ++$i)
        $numbers[] = $seed = ($seed + 1) * 48271 % 2147483647;
    return $numbers;
}

class Evens extends FilterIterator
{
    public function accept(): bool { return $this->current() % 2 === 0; }
}

class ByLength extends SplMinHeap
{
    protected function compare($a, $b): int { return [strlen($b), $b] <=> [strlen($a), $a]; }
}

return [
    'standard' => function (int $round) {
        $results = [];
        $numbers = lehmer(2000 + $round * 100, $round);
        $sorted = $numbers;
        sort($sorted);
        $results[] = [$sorted[0], end($sorted), count($sorted)];
        $words = array_map(fn($n) => base_convert((string)$n, 10, 36), $numbers);
        usort($words, fn($a, $b) => [strlen($a), $a] <=> [strlen($b), $b]);
        $results[] = [$words[0], $words[1000]];
        $index = array_flip($words);
        ksort($index);
        asort($index);
        krsort($index);
        arsort($index);
        $results[] = [array_key_first($index), array_key_last($index)];
        natsort($words);
        $results[] = md5(implode(',', $words));
        $results[] = count(array_unique(array_map(fn($n) => $n % 1000, $numbers)));
        $results[] = array_map(null, array_slice($numbers, 0, 5), array_slice($words, 0, 5));
        foreach ([3, 7, 50] as $size) {
            $parts = array_chunk($numbers, $size, true);
            $results[] = [count($parts), array_sum(array_map('array_sum', $parts)) === array_sum($numbers)];
        }
        $columns = array_map(fn($n) => ['id' => $n, 'last' => $n % 10, 'text' => "number $n"], $numbers);
        $results[] = array_count_values(array_column($columns, 'last', 'id'));
        $groups = [];
        foreach ($columns as $column)
            $groups[$column['last']][] = $column['text'];
        ksort($groups);
        $results[] = array_map('count', $groups);
        array_multisort(array_column($columns, 'last'), SORT_DESC, array_column($columns, 'id'), $columns);
        $results[] = $columns[0];
        unset($groups, $columns);
        $results[] = array_merge_recursive(['a' => [1], 'b' => 2], ['a' => [3], 'b' => $round]);
        $results[] = array_replace_recursive(['a' => [1, 2, 3]], ['a' => [1 => 'x']]);
        $results[] = count(array_diff_key(array_flip($numbers), array_flip(array_slice($numbers, 100))));
        $results[] = count(array_intersect_key($numbers, range(0, 300)));
        $results[] = array_reduce($numbers, fn($carry, $n) => ($carry * 31 + $n) % 1000003, 7);
        $stack = [];
        foreach ($numbers as $i => $n) {
            $i % 3 ? array_push($stack, $n) : array_unshift($stack, $n);
            if ($i % 5 === 0)
                array_shift($stack);
            if (count($stack) > 40)
                array_splice($stack, 10, 20, ['spliced']);
        }
        $results[] = $stack;
        $nested = [];
        for ($i = 0; $i < 100; ++$i)
            $nested = ['level' => $i, 'inner' => $nested];
        array_walk_recursive($nested, function (&$value) { $value = -$value; });
        $results[] = [count($nested, COUNT_RECURSIVE), strlen(serialize($nested)),
            strlen(var_export($nested, true)),
                      strlen(print_r($nested, true))];
        $results[] = [array_fill_keys(range('a', 'e'), 0), array_pad([1], -4, 0), range('z', 'a', 5),
                      array_product([1, 2, 3.5]), array_search($numbers[70], $numbers),
                          array_is_list($numbers)];
        $holes = array_fill(0, 5000, 'x');
        for ($i = 0; $i < 5000; $i += 2)
            unset($holes[$i]);
        $holes[] = 'end';
        $results[] = [count($holes), array_key_last($holes), count(array_values($holes))];
        return $results;
    },
    'SPL' => function (int $round, string $folder) {
        $numbers = lehmer(500 + $round * 10, $round);
        $queue = new SplPriorityQueue;
        $queue->setExtractFlags(SplPriorityQueue::EXTR_BOTH);
        $list = new SplDoublyLinkedList;
        $fixed = new SplFixedArray(count($numbers));
        $heap = new SplMinHeap;
        $words = new ByLength;
        $objects = new SplObjectStorage;
        $kept = [];
        foreach ($numbers as $i => $number) {
            $queue->insert("value $number", $number);
            $i % 2 ? $list->push(str_repeat('x', $i)) : $list->unshift($number);
            $fixed[$i] = "entry $number";
            $heap->insert($number);
            $words->insert(base_convert((string)$number, 10, 36));
            $kept[$i] = (object)['number' => $number];
            $objects[$kept[$i]] = str_repeat('o', $i % 50);
        }
        $results = [$queue->extract(), $list->count(), $heap->extract(), $words->extract(), count($objects)];
        foreach ($kept as $i => $object)
            if ($i % 3 === 0)
                $objects->detach($object);
        $results[] = count($objects);
        for ($i = 0; $i < 100; ++$i) {
            $results[] = $heap->extract();
            $list->offsetUnset($i);
        }
        $fixed->setSize(1000 + $round);
        $results[] = [$fixed->getSize(), $fixed[499], $list->top(), count($list)];
        $stack = new SplStack;
        $fifo = new SplQueue;
        for ($i = 0; $i < 1000; ++$i) {
            $stack->push($i);
            $fifo->enqueue([$i]);
            if ($i % 3 === 0)
                $results[] = $stack->pop() + $fifo->dequeue()[0];
        }
        $array = new ArrayObject(array_combine(array_map(fn($n) => "k$n", $numbers), $numbers));
        $array->ksort();
        $array['new'] = 1;
        unset($array['new']);
        $results[] = [count($array), array_key_first($array->getArrayCopy())];

        $both = new MultipleIterator(MultipleIterator::MIT_NEED_ALL | MultipleIterator::MIT_KEYS_ASSOC);
        $both->attachIterator(new LimitIterator(new ArrayIterator($numbers), 5, 20), 'number');
        $both->attachIterator(new InfiniteIterator(new ArrayIterator(['a', 'b', 'c'])), 'letter');
        foreach ($both as $pair)
            $results[] = $pair;
        $all = new AppendIterator;
        $all->append(new Evens(new ArrayIterator($numbers)));
        $all->append(new CallbackFilterIterator(new ArrayIterator($numbers), fn($n) => $n % 7 === 0));
        $results[] = iterator_count($all);
        $cached = new CachingIterator(new ArrayIterator(range(1, 10)), CachingIterator::FULL_CACHE);
        foreach ($cached as $number)
            $results[] = [$number, $cached->hasNext()];
        $results[] = count($cached->getCache());
        $results[] = array_sum(iterator_to_array(new RecursiveIteratorIterator(
            new RecursiveArrayIterator([1, [2, [3, [$round]]], range(4, 90)])), false));
        $results[] = implode("\n", iterator_to_array(new RecursiveTreeIterator(
            new RecursiveArrayIterator(['a' => 1, 'b' => ['c' => 2, 'd' => ['e' => 3]]])), false));
        $results[] = iterator_to_array(new RegexIterator(new ArrayIterator(['apple', 'bean', 'avocado']),
            '/^a/'));

        $file = new SplFileObject("$folder/table.csv", 'w+');
        foreach (array_slice($numbers, 0, 100) as $number)
            $file->fputcsv([$number, "a \"quoted\" $number", text($round % 2)], ',', '"', '\\');
        $file->seek(50);
        $results[] = strlen($file->current());
        $file->rewind();
        $results[] = count($file->fgetcsv(',', '"', '\\'));
        unset($file);
        $results[] = array_map(fn($entry) => $entry->getExtension(),
                               iterator_to_array(new GlobIterator("$folder/*.csv"), false));
        unlink("$folder/table.csv");
        $temporary = new SplTempFileObject(1000); // moves from memory to a file
        for ($i = 0; $i < 100; ++$i)
            $temporary->fwrite("temporary line $i\n");
        $temporary->seek(99);
        $results[] = $temporary->fgets();
        spl_autoload_register($load = function (string $class) {
            if (str_starts_with($class, 'Made'))
                eval("class $class { public \$name = '$class'; }");
        });
        $results[] = (new ("Made$round"))->name;
        spl_autoload_unregister($load);
        return $results;
    },
    'ds' => function (int $round) {
        $numbers = lehmer(500, $round);
        $map = new Ds\Map;
        $set = new Ds\Set;
        $deque = new Ds\Deque;
        $vector = new Ds\Vector;
        $queue = new Ds\PriorityQueue;
        foreach ($numbers as $i => $number) {
            $map->put([$number % 100], "value $i");
            $set->add($number % 77);
            $i % 2 ? $deque->push($number) : $deque->unshift($number);
            $vector->insert(intdiv($i, 2), $number);
            $queue->push($number, $number);
        }
        $deque->rotate(13);
        return [count($map), $map->get([5]), $set->count(), $deque->first(), $vector->sum(), $queue->pop(),
                $map->ksorted()->first()->value, $vector->sorted()->slice(0, 3)->toArray()];
    },
    'apcu' => function (int $round) {
        if (!apcu_enabled())
            return 'off';
        for ($i = 0; $i < 100; ++$i)
            apcu_store("key$i", tree($i % 5));
        return [apcu_fetch('key7'), apcu_exists('none'), apcu_delete('key7'), apcu_clear_cache()];
    },
];
