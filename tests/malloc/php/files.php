<?php
// Uses files: archives, compression, images, and streams with filters and wrappers.

/** A stream whose data is in an array, $opened[name]. */
class Memory
{
    public static array $files = [];
    public $context;
    private string $name;
    private int $at = 0;
    public function stream_open(string $path, string $mode): bool
    {
        $this->name = $path;
        if ($mode[0] === 'w')
            self::$files[$path] = '';
        return isset(self::$files[$path]);
    }
    public function stream_read(int $bytes): string
    {
        $data = substr(self::$files[$this->name], $this->at, $bytes);
        $this->at += strlen($data);
        return $data;
    }
    public function stream_write(string $data): int { self::$files[$this->name] .= $data; return strlen($data); }
    public function stream_eof(): bool { return $this->at >= strlen(self::$files[$this->name]); }
    public function stream_stat(): array { return ['size' => strlen(self::$files[$this->name])]; }
    public function unlink(string $path): bool { unset(self::$files[$path]); return true; }
}

/** A filter that doubles each vowel. */
class Vowels extends php_user_filter
{
    public function filter($in, $out, &$consumed, bool $closing): int
    {
        while ($bucket = stream_bucket_make_writeable($in)) {
            $consumed += $bucket->datalen;
            $bucket->data = preg_replace('/[aeiou]/', '$0$0', $bucket->data);
            stream_bucket_append($out, $bucket);
        }
        return PSFS_PASS_ON;
    }
}

stream_wrapper_register('memory', Memory::class);
stream_filter_register('vowels', Vowels::class);

return [
    'standard' => function (int $round, string $folder) {
        $results = [];
        $text = text($round);
        file_put_contents("memory://a$round", $text);
        file_put_contents("memory://a$round", 'appended', FILE_APPEND);
        $results[] = [md5(file_get_contents("memory://a$round")), count(file('data:text/plain,a%0Ab%0Ac')),
            unlink("memory://a$round")];
        $file = tmpfile();
        stream_filter_append($file, 'string.toupper', STREAM_FILTER_WRITE);
        stream_filter_append($file, 'vowels', STREAM_FILTER_READ);
        fwrite($file, $text);
        rewind($file);
        $results[] = md5(stream_get_contents($file));
        ftruncate($file, 10);
        fseek($file, 0, SEEK_END);
        $results[] = [ftell($file), fstat($file)['size'], flock($file, LOCK_EX)];
        fclose($file);
        file_put_contents("php://filter/write=convert.base64-encode|string.rot13/resource=$folder/f", $text);
        $results[] = [filesize("$folder/f"), md5_file("$folder/f")];
        for ($i = 0; $i < 20; ++$i)
            copy("$folder/f", "$folder/copy$i");
        $names = array_map('basename', glob("$folder/copy*"));
        $results[] = [count($names), pathinfo("$folder/copy1")['filename'],
            rename("$folder/copy1", "$folder/copy1x"), fnmatch('c*[0-9]', 'copy7')];
        array_map('unlink', glob("$folder/{copy,f}*", GLOB_BRACE));
        $csv = fopen('php://temp/maxmemory:500', 'w+');
        for ($i = 0; $i < 50; ++$i)
            fputcsv($csv, ["a\"$i", str_repeat(',', $i), "line\n$i"], ',', '"', '');
        rewind($csv);
        while (($row = fgetcsv($csv, null, ',', '"', '')) !== false)
            $results[] = $row;
        $results[] = parse_ini_string("[a]\nb = $round\nc[] = 1\nc[] = 2\nd = \"x y\"", true,
            INI_SCANNER_TYPED);
        $process = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        fwrite($pipes[0], substr($text, 0, 9000));
        fclose($pipes[0]);
        $results[] = [strlen(stream_get_contents($pipes[1])), proc_close($process),
            shell_exec("echo $round"), thrown(fn() => proc_open('', [], $p))];
        return $results;
    },
    'zlib' => function (int $round, string $folder) {
        $text = text($round);
        $results = [md5(gzcompress($text, 9)), gzinflate(gzdeflate($text)) === $text,
            strlen(gzencode(str_repeat($text, 20)))];
        $deflate = deflate_init(ZLIB_ENCODING_GZIP, ['level' => $round % 10, 'memory' => 1 + $round % 9,
            'window' => 9 + $round % 7]);
        $packed = '';
        foreach (str_split($text, 500) as $part)
            $packed .= deflate_add($deflate, $part, ZLIB_SYNC_FLUSH);
        $packed .= deflate_add($deflate, '', ZLIB_FINISH);
        $inflate = inflate_init(ZLIB_ENCODING_GZIP);
        $results[] = [md5($packed), inflate_add($inflate, $packed) === $text, @gzuncompress('nonsense')];
        file_put_contents("compress.zlib://$folder/z.gz", $text);
        $results[] = [strlen(implode('', gzfile("$folder/z.gz"))), unlink("$folder/z.gz")];
        return $results;
    },
    'bz2' => fn(int $round, string $folder) => [
        md5(bzcompress(text($round), 1 + $round % 9)),
            bzdecompress(bzcompress(text($round))) === text($round), bzdecompress('nonsense'),
        file_put_contents("compress.bzip2://$folder/b.bz2", text($round)),
            strlen(file_get_contents("compress.bzip2://$folder/b.bz2")),
        unlink("$folder/b.bz2")],
    'zip' => function (int $round, string $folder) {
        $archive = new ZipArchive;
        $archive->open("$folder/a.zip", ZipArchive::CREATE);
        for ($i = 0; $i < 20; ++$i) {
            $archive->addFromString("folder/file$i.txt", str_repeat(text($round % 5), $i));
            $archive->setCompressionIndex($i, [ZipArchive::CM_DEFLATE, ZipArchive::CM_STORE,
                ZipArchive::CM_BZIP2][$i % 3]);
        }
        $archive->setEncryptionName('folder/file3.txt', ZipArchive::EM_AES_256, 'word');
        $archive->setArchiveComment("round $round");
        $archive->close();
        $archive->open("$folder/a.zip", ZipArchive::CHECKCONS);
        $archive->setPassword('word');
        $results = [$archive->numFiles, $archive->getArchiveComment(),
            md5($archive->getFromName('folder/file3.txt')), $archive->statIndex(7)['size'],
                    $archive->locateName('file9.txt', ZipArchive::FL_NODIR),
                        strlen(stream_get_contents($archive->getStream('folder/file8.txt')))];
        $archive->deleteIndex(0);
        $archive->renameIndex(1, 'renamed');
        $archive->close();
        $results[] = [strlen(file_get_contents("zip://$folder/a.zip#renamed")),
            (new ZipArchive)->open(__FILE__)];
        unlink("$folder/a.zip");
        return $results;
    },
    'Phar' => function (int $round, string $folder) {
        $archive = new PharData("$folder/$round.tar");
        for ($i = 0; $i < 10; ++$i)
            $archive->addFromString("file$i.txt", str_repeat(text($round), $i));
        $archive->setMetadata(['round' => $round]);
        $packed = $archive->compress(Phar::GZ);
        $results = [$archive->count(), strlen(file_get_contents("phar://$folder/$round.tar/file9.txt")),
            $packed['file3.txt']->getSize(), $archive->getMetadata()];
        unset($archive, $packed);
        array_map('unlink', glob("$folder/$round.tar*"));
        return $results;
    },
    'fileinfo' => fn(int $round) => [(new finfo(FILEINFO_MIME_TYPE))->buffer("\x89PNG\r\n\x1a\n" . text($round)), (new finfo)->file(PHP_BINARY, FILEINFO_MIME),
                                     (new finfo)->buffer(gzencode(text($round)), FILEINFO_EXTENSION),
                                         mime_content_type(__FILE__)],
    'exif' => function (int $round, string $folder) {
        $tiff = "II*\0" . pack('VvvvVV', 8, 1, 0x10F, 2, 6, 26) . pack('V',
            0) . "maker\0"; // a picture with one tag
        file_put_contents("$folder/e.jpg",
            "\xFF\xD8\xFF\xE1" . pack('n', strlen($tiff) + 8) . "Exif\0\0$tiff\xFF\xD9");
        $results = [exif_tagname(0x10F + $round), @exif_read_data("$folder/e.jpg")['Make'] ?? null,
            exif_imagetype("$folder/e.jpg")];
        unlink("$folder/e.jpg");
        return $results;
    },
    'gd' => function (int $round) {
        $image = imagecreatetruecolor(200 + $round * 10, 150);
        imagealphablending($image, true);
        for ($i = 0; $i < 30; ++$i) {
            $color = imagecolorallocatealpha($image, $i * 8, 255 - $i * 7, $round * 20, $i * 4);
            imagefilledellipse($image, $i * 7, $i * 5, 40 + $i, 30, $color);
            imageline($image, 0, $i * 5, 200, 150 - $i, $color);
            imagestring($image, $i % 5 + 1, $i * 3, $i * 4, "text $i", $color);
        }
        imagefilledpolygon($image, [10, 10, 50, 120, 150, 20], imagecolorallocate($image, 1, 2, 3));
        imagefilter($image, IMG_FILTER_GAUSSIAN_BLUR);
        imageconvolution($image, [[0, -1, 0], [-1, 5, -1], [0, -1, 0]], 1, 0);
        $turned = imagerotate(imagescale($image, 120, 80), 30 + $round, 0);
        imageflip($turned, IMG_FLIP_BOTH);
        $small = imagecrop($turned, ['x' => 5, 'y' => 5, 'width' => 60, 'height' => 40]);
        $results = [imagesx($turned), imagesy($turned), imagecolorat($small, 20, 20)];
        imagetruecolortopalette($small, true, 16);
        foreach (['png', 'gif', 'jpeg', 'bmp', 'webp'] as $format) {
            if (!function_exists("image$format"))
                continue;
            ob_start();
            ("image$format")($format === 'webp' ? $image : $small);
            $data = ob_get_clean();
            $read = imagecreatefromstring($data);
            $results[] = [$format, md5($data), imagesx($read), getimagesizefromstring($data)['mime']];
        }
        $results[] = @imagecreatefromstring('nonsense');
        return $results;
    },
    'imagick' => function (int $round) {
        $image = new Imagick;
        $image->newPseudoImage(60 + $round, 40, 'gradient:red-blue');
        $drawing = new ImagickDraw;
        $drawing->setFillColor('yellow');
        $drawing->circle(20, 20, 30, 25 + $round);
        $image->drawImage($drawing);
        $image->resizeImage(50, 30, Imagick::FILTER_LANCZOS, 1);
        $image->rotateImage('black', 15);
        $image->setImageFormat('png');
        $copy = clone $image;
        return [$copy->getImageWidth(), $copy->getImageSignature(), strlen($image->getImageBlob()) > 100,
            $image->getImageColors()];
    },
];
