<?php
// Uses each extension of PHP that is loaded, and prints digests of results that must not depend on
// malloc. tests/malloc/real_programs compares the output under two mallocs.
//
//     php tests/malloc/php/run.php [EXTENSION...]
//
// Each other file of this directory returns functions, with the names of the extensions that they
// use as keys. Each round calls each function with another number, so that blocks of other sizes
// are allocated.
const ROUNDS = 10;
ini_set('memory_limit', '256M'); // A script with a bug must not use all memory of the machine.

/** Returns a text that grows with the round. */
function text(int $round): string
{
    return str_repeat("Line $round: the quick brown fox ", 1 + $round * 50);
}

/** A node of a tree, as in typical programs. */
class Node implements JsonSerializable, IteratorAggregate
{
    public function __construct(public int $number, public array $children = []) {}
    public function jsonSerialize(): array { return [$this->number, $this->children]; }
    public function getIterator(): Iterator { return new ArrayIterator($this->children); }
}

/** Returns a binary tree. */
function tree(int $depth): Node
{
    return new Node($depth, $depth === 0 ? [] : [tree($depth - 1), tree($depth - 1)]);
}

/** Calls $use, and returns the message of what it throws. */
function thrown(callable $use): string
{
    try {
        $use();
    } catch (Throwable $error) {
        return $error->getMessage();
    }
    return 'nothing was thrown';
}

// No server listens here, so connections fail.
const NO_SERVER = '127.0.0.1';
const NO_PORT = 1;

$uses = [];
foreach (glob(__DIR__ . '/*.php') as $file)
    if ($file !== __FILE__)
        foreach (require $file as $name => $use)
            $uses[$name][] = $use;
ksort($uses, SORT_FLAG_CASE | SORT_STRING);

$folder = sys_get_temp_dir() . '/' . bin2hex(random_bytes(8));
mkdir($folder);
set_error_handler(function (int $level, string $message, string $file, int $line) {
    if (error_reporting() & $level) // not for calls with @
        throw new ErrorException($message, 0, $level, $file, $line);
    return true;
});
libxml_use_internal_errors(true);
$output = ''; // is printed at the end, because a session does not start after output
$faults = 0;
$loaded = get_loaded_extensions();
foreach (array_slice($argv, 1) ?: array_keys($uses) as $name) {
    if (!in_array(strtolower($name), array_map('strtolower', $loaded)))
        continue; // The output has no line for an extension that is not installed.
    $digest = hash_init('sha256');
    for ($round = 0; $round < ROUNDS; ++$round) {
        foreach ($uses[$name] as $use) {
            try {
                hash_update($digest, serialize($use($round, $folder)));
            } catch (Throwable $error) {
                $output .= "$name failed in round $round: $error\n";
                ++$faults;
                break 2;
            }
        }
    }
    $output .= $name . ' ' . substr(hash_final($digest), 0, 32) . "\n";
}
if (count(scandir($folder)) > 2) {
    $output .= 'files are left: ' . implode(' ', scandir($folder)) . "\n";
    ++$faults;
}
array_map('unlink', glob("$folder/*"));
rmdir($folder);
$used = array_map('strtolower', array_keys($uses));
$unused = array_filter($loaded, fn($name) => !in_array(strtolower($name), $used));
echo $output, 'not used: ', implode(' ', $unused), "\n";
exit($faults === 0 ? 0 : 1);
