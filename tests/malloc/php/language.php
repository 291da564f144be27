<?php
// Uses the language itself: objects, closures, generators, fibers, references, exceptions, and the cycle
// collector.

enum Suit: string
{
    case Hearts = 'H';
    case Spades = 'S';
    const WILD = self::Spades;
    public static function of(int $number): self { return self::cases()[$number % 2]; }
    public function label(): string { return ucfirst(strtolower($this->name)); }
}

trait Counts
{
    private static int $made = 0;
    public static function made(): int { return self::$made; }
    protected function count(): void { ++self::$made; }
}

abstract class Shape
{
    use Counts;
    public function __construct(protected readonly string $name) { $this->count(); }
    abstract public function area(): float;
    public function __toString(): string { return sprintf('%s of %.2f', $this->name, $this->area()); }
}

final class Circle extends Shape
{
    public function __construct(private float $radius) { parent::__construct('circle'); }
    public function area(): float { return M_PI * $this->radius ** 2; }
}

final class Rectangle extends Shape
{
    public function __construct(private float $width,
        private float $height) { parent::__construct('rectangle'); }
    public function area(): float { return $this->width * $this->height; }
    public function __clone() { $this->width *= 2; }
}

/** Accepts any property, as objects of configuration files do. */
class Bag implements ArrayAccess, Countable
{
    private array $entries = [];
    public function __get(string $name) { return $this->entries[$name] ?? null; }
    public function __set(string $name, $value): void { $this->entries[$name] = $value; }
    public function __isset(string $name): bool { return isset($this->entries[$name]); }
    public function __unset(string $name): void { unset($this->entries[$name]); }
    public function __call(string $name, array $arguments) { return [$name, ...$arguments]; }
    public static function __callStatic(string $name,
        array $arguments) { return "$name/" . count($arguments); }
    public function __invoke(int $add): int { return $add + count($this->entries); }
    public function __serialize(): array { return array_reverse($this->entries); }
    public function __unserialize(array $data): void { $this->entries = $data; }
    public function offsetExists(mixed $key): bool { return isset($this->entries[$key]); }
    public function offsetGet(mixed $key): mixed { return $this->entries[$key]; }
    public function offsetSet(mixed $key, mixed $value): void
    {
        if ($key === null)
            $this->entries[] = $value;
        else
            $this->entries[$key] = $value;
    }
    public function offsetUnset(mixed $key): void { unset($this->entries[$key]); }
    public function count(): int { return count($this->entries); }
}

/** A node of a cycle, which only PHP's cycle collector can free. */
class Ring
{
    public static int $freed = 0;
    public ?Ring $next = null;
    public string $load;
    public function __construct(int $bytes) { $this->load = str_repeat('r', $bytes); }
    public function __destruct() { ++self::$freed; }
}

function numbers(int $from, int $to): Generator
{
    for ($i = $from; $i <= $to; ++$i) {
        $command = yield $i => str_repeat("$i,", $i % 17);
        if ($command === 'stop')
            return "stopped at $i";
    }
    return 'ended';
}

function walk(Node $node): Generator
{
    yield $node->number;
    foreach ($node as $child)
        yield from walk($child);
}

function deep(int $level): int
{
    if ($level === 0)
        throw new DomainException('the bottom', 7, new LogicException(str_repeat('cause ', 50)));
    try {
        return deep($level - 1) + 1;
    } finally {
        $GLOBALS['unwound'] = ($GLOBALS['unwound'] ?? 0) + 1;
    }
}

return [
    'Core' => function (int $round) {
        $results = [];

        $shapes = [];
        for ($i = 1; $i <= 200; ++$i)
            $shapes[] = $i % 3 ? new Circle($i / 7) : new Rectangle($i, $round + 1);
        $copies = array_map(fn(Shape $shape) => clone $shape, $shapes);
        $results[] = array_map('strval', array_slice($copies, 0, 20));
        $results[] = array_sum(array_map(fn($shape) => $shape->area(), $shapes));
        unset($shapes, $copies);

        $bag = new Bag;
        for ($i = 0; $i < 300; ++$i)
            $bag->{"key$i"} = str_repeat('v', $i);
        foreach (range(0, 299, 3) as $i)
            unset($bag->{"key$i"});
        $bag[] = 'last';
        $again = unserialize(serialize($bag));
        $results[] = [count($again), isset($again->key1), isset($again['key3']), $bag(5), Bag::make(1, 2),
                      $bag->anything('x', [1])];

        $results[] = [Suit::from('H')->label(), Suit::tryFrom('X'), Suit::WILD->name,
            Suit::of($round)->value];

        $ring = null;
        for ($i = 0; $i < 200; ++$i) {
            $first = new Ring($i);
            $first->next = new Ring($i * 2);
            $first->next->next = $first;
        }
        unset($first);
        $results[] = gc_collect_cycles() > 0;
        $results[] = Ring::$freed;

        $generator = numbers(1, 100 + $round);
        $text = '';
        foreach ($generator as $i => $part) {
            $text .= $part;
            if ($i === 60 + $round)
                $generator->send('stop');
        }
        $results[] = [strlen($text), md5($text), $generator->getReturn()];
        $results[] = array_sum(iterator_to_array(walk(tree(8)), false));
        $broken = numbers(1, 9);
        $broken->current();
        $results[] = thrown(fn() => $broken->throw(new RangeException('thrown into a generator')));

        $fiber = new Fiber(function (int $start) use ($round): string {
            $sum = $start;
            while (($next = Fiber::suspend(str_repeat('s', $sum % 100))) !== null)
                $sum += $next;
            return "sum $sum in round $round";
        });
        $pieces = [$fiber->start(3)];
        for ($i = 0; $i < 50; ++$i)
            $pieces[] = $fiber->resume($i);
        $fiber->resume(null);
        $results[] = [implode('', $pieces), $fiber->getReturn()];
        $fibers = array_map(fn($i) => new Fiber(fn() => Fiber::suspend(range(0, $i))), range(0, 50));
        foreach ($fibers as $unfinished) // These are destroyed while they are suspended.
            $results[] = count($unfinished->start());
        unset($fibers, $unfinished);

        $results[] = thrown(fn() => deep(100 + $round));
        $results[] = $GLOBALS['unwound'];
        try {
            deep(3);
        } catch (DomainException $error) {
            $results[] = [$error->getCode(), strlen($error->getPrevious()->getMessage()),
                          count($error->getTrace())];
        }
        $results[] = [thrown(fn() => intdiv(1, 0)), thrown(fn() => strlen([])),
            thrown(fn() => new Shape('x')),
                      thrown(fn() => null_function()), thrown(fn() => [1, 2, 3] % 2)];

        $add = fn(int ...$all) => array_sum($all);
        $curried = fn($a) => fn($b) => fn($c) => $add($a, $b, $c);
        $length = strlen(...);
        $results[] = [$curried(1)(2)($round), array_map($length, explode(' ', text($round % 3)))];
        $counter = static function () { static $calls = 0; return ++$calls; };
        for ($i = 0; $i < 100; ++$i)
            $counter();
        $results[] = $counter();

        $table = [];
        $reference = &$table['a']['b']['c'];
        $reference = range(0, 50);
        foreach ($table['a']['b']['c'] as &$entry)
            $entry = "[$entry]";
        unset($entry, $reference);
        $copy = $table;
        $copy['a']['b']['c'][0] = 'changed';
        $results[] = [$table['a']['b']['c'][0], implode($copy['a']['b']['c'])];

        [$one, [, $two], $three] = [1, [2, 3], str_repeat('t', $round * 100)];
        ['x' => $x, 'y' => [$y]] = ['x' => 1, 'y' => [$round]];
        $results[] = match (true) {
            $y > 5 => "late $three",
            $y === 0 => 'first',
            default => "$one$two$x",
        };
        $variable = 'dynamic';
        $$variable = "made {$round} by $variable";
        $results[] = [$dynamic, compact('one', 'two'), eval("return str_repeat('e', $round + 3);")];
        $results[] = <<<TEXT
              indented {$table['a']['b']['c'][$round]} and {$length('four')}
                more
              TEXT;
        $weak = new WeakMap;
        $keys = [];
        for ($i = 0; $i < 100; ++$i) {
            $keys[$i] = new stdClass;
            $weak[$keys[$i]] = str_repeat('w', $i * 10);
        }
        array_splice($keys, 0, 50);
        $reference = WeakReference::create($keys[0]);
        $results[] = [count($weak), $reference->get() === $keys[0]];
        unset($keys);
        $results[] = [count($weak), $reference->get()];
        ob_start();
        for ($i = 0; $i < 500; ++$i)
            echo "line $i of the buffer\n";
        $results[] = md5(ob_get_clean());
        return $results;
    },
    'Reflection' => function (int $round) {
        $class = new ReflectionClass(Rectangle::class);
        $methods = array_map(fn($m) => $m->getName(), $class->getMethods());
        $function = new ReflectionFunction('numbers');
        $enum = new ReflectionEnum(Suit::class);
        $object = (new ReflectionClass(Node::class))->newInstanceWithoutConstructor();
        $property = new ReflectionProperty(Bag::class, 'entries');
        $property->setValue($bag = new Bag, range(0, $round));
        return [$methods, (string)$function->getReturnType(), $function->getNumberOfParameters(),
                strlen((string)$class), $enum->getBackingType()->getName(), count($enum->getCases()),
                $object instanceof Node, count($bag), (string)(new ReflectionParameter([Bag::class,
                    '__call'], 1))];
    },
    'psr' => fn(int $round) => interface_exists('Psr\Log\LoggerInterface'),
    'tokenizer' => function (int $round) {
        $names = array_map(fn($token) => $token->getTokenName(),
            PhpToken::tokenize(file_get_contents(__FILE__)));
        $counts = array_count_values($names);
        arsort($counts);
        return [$counts['T_VARIABLE'], count(token_get_all(text($round))), key($counts)];
    },
    'ast' => fn(int $round) => count(ast\parse_code(file_get_contents(__FILE__),
        ast\get_supported_versions()[0])
                                      ->children),
    'Zend OPcache' => function (int $round, string $folder) {
        $script = "$folder/made$round.php";
        file_put_contents($script, "<?php return fn(\$x) => \$x * $round + array_sum([1, 2, $round]);");
        $made = require $script;
        $result = $made(7);
        if (function_exists('opcache_invalidate'))
            @opcache_invalidate($script, true);
        unlink($script);
        return [$result, is_array(@opcache_get_status(false)) || true];
    },
    'FFI' => function (int $round) {
        if (ini_get('ffi.enable') === '0')
            return 'off';
        $c = FFI::cdef('void* malloc(size_t); void free(void*); char* strdup(const char*);
                        void qsort(void*, size_t, size_t, int (*)(const void*, const void*));
                        struct point { int x; double y; };');
        $numbers = FFI::new('int[' . (100 + $round) . ']');
        for ($i = 0; $i < 100 + $round; ++$i)
            $numbers[$i] = $i * 7919 % 101;
        $c->qsort($numbers, 100 + $round, 4, function ($a, $b) {
            return FFI::cast('int*', $a)[0] <=> FFI::cast('int*', $b)[0];
        });
        $blocks = [];
        for ($i = 0; $i < 100; ++$i) // The C library allocates these, the script frees them.
            $blocks[] = $c->strdup(str_repeat('s', $i * 10));
        $length = array_sum(array_map(fn($block) => strlen(FFI::string($block)), $blocks));
        array_map(fn($block) => $c->free($block), $blocks);
        $point = $c->new('struct point');
        $point->x = $round;
        $owned = FFI::new('char[5000]', false, true);
        FFI::free($owned);
        return [$numbers[0], $numbers[99 + $round], $length, FFI::sizeof($point), $point->x];
    },
];
