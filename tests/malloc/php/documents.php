<?php
// Uses documents: XML with each XML extension, HTML, and SOAP.

/** Returns a library as XML. */
function library(int $books): string
{
    $xml = '<?xml version="1.0"?><library xmlns:m="urn:meta">';
    for ($i = 0; $i < $books; ++$i)
        $xml .= "<book id=\"b$i\"><title>Title &lt;$i&gt;</title><m:year>" . (1900 + $i) . '</m:year>' .
                "<!-- note $i --><text><![CDATA[" . str_repeat("line $i & more\n",
                    $i % 20) . ']]></text></book>';
    return $xml . '</library>';
}

const STYLE = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:m="urn:meta"
                              xmlns:php="http://php.net/xsl">
  <xsl:output method="html"/><xsl:param name="from" select="0"/><xsl:key name="ids" match="book" use="@id"/>
  <xsl:template match="/library"><ul><xsl:for-each select="book[m:year &gt; $from]">
    <xsl:sort select="title" order="descending"/>
    <li class="{@id}"><xsl:value-of select="concat(title, \', \', m:year)"/>
      <xsl:value-of select="php:function(\'strtoupper\', string(title))"/></li></xsl:for-each></ul></xsl:template>
</xsl:stylesheet>';

/** The server of the SOAP test. */
class Calculator
{
    public function add(int $a, int $b): int { return $a + $b; }
    public function repeat(string $text, int $times): array { return array_fill(0, $times, $text); }
}

/** A SOAP client whose server is in the same process. */
if (extension_loaded('soap')) {
    class LocalClient extends SoapClient
    {
        public SoapServer $server;
        public function __doRequest(string $request, string $location, string $action, int $version,
            bool $oneWay = false): ?string
        {
            ob_start();
            @$this->server->handle($request);
            return ob_get_clean();
        }
    }
}

return [
    'libxml' => function (int $round) {
        libxml_clear_errors();
        if (!extension_loaded('dom'))
            return [LIBXML_DOTTED_VERSION, libxml_get_errors()];
        $document = new DOMDocument;
        $document->loadXML(str_repeat('<open>', $round + 5) . '&unknown;' . '</other>');
        $errors = array_map(fn($error) => [$error->code, trim($error->message), $error->line],
            libxml_get_errors());
        libxml_clear_errors();
        libxml_set_external_entity_loader(fn($public,
            $system) => fopen('data:text/plain,entity of ' . basename($system), 'r'));
        $document->loadXML('<!DOCTYPE a [<!ENTITY e SYSTEM "made.txt">]><a>&e;</a>', LIBXML_NOENT);
        $text = $document->textContent;
        libxml_set_external_entity_loader(null);
        return [$errors, $text];
    },
    'dom' => function (int $round) {
        $document = new DOMDocument;
        $document->loadXML(library(50 + $round * 10));
        $path = new DOMXPath($document);
        $path->registerNamespace('m', 'urn:meta');
        $results = [$path->evaluate('sum(//m:year)'),
            $path->query('//book[position() mod 7 = 1]/title')->length];
        foreach ($path->query('//comment()') as $comment)
            $comment->parentNode->removeChild($comment);
        foreach (iterator_to_array($document->getElementsByTagName('book')) as $i => $book) {
            if ($i % 3 === 0)
                $book->parentNode->insertBefore($document->createElement('gap', "before $i"), $book);
            if ($i % 4 === 0)
                $book->setAttribute('length', (string)strlen($book->textContent));
            if ($i % 5 === 0)
                $book->remove();
        }
        $kept = $path->query('//book[1]')->item(0);
        $copy = new DOMDocument;
        $copy->appendChild($copy->importNode($kept, true));
        $fragment = $copy->createDocumentFragment();
        $fragment->appendXML('<x>1</x><y z="2"/>');
        $copy->documentElement->appendChild($fragment);
        $kept->parentNode->removeChild($kept);
        unset($document, $path); // The node that was removed keeps its document.
        $results[] = [$kept->textContent, $copy->saveXML(), $kept->ownerDocument->C14N() !== ''];
        $page = new DOMDocument;
        @$page->loadHTML('<html><body><p>one<p>two<table><tr><td>' . text($round) . '<br></html>');
        $results[] = [$page->saveHTML(), $page->getElementsByTagName('p')->length];
        $schema = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="n" type="xs:int"/></xs:schema>';
        foreach (["<n>$round</n>", '<n>text</n>'] as $text) {
            $valid = new DOMDocument;
            $valid->loadXML($text);
            $results[] = $valid->schemaValidateSource($schema);
        }
        libxml_clear_errors();
        return $results;
    },
    'SimpleXML' => function (int $round) {
        $library = simplexml_load_string(library(50 + $round * 10));
        $years = [];
        foreach ($library->book as $book)
            $years[(string)$book['id']] = (int)$book->children('urn:meta')->year;
        $library->book[3]->title = 'changed';
        unset($library->book[2]);
        $library->addChild('book', 'added')->addAttribute('id', 'new');
        $results = [array_sum($years), count($library->book), (string)$library->book[2]->title,
            $library->xpath('//book[@id="new"]')[0]];
        $results[3] = (string)$results[3];
        $results[] = md5($library->asXML());
        $results[] = json_encode(simplexml_load_string('<a b="1"><c>2</c><c>3</c></a>'));
        $results[] = array_map('strval', iterator_to_array((new SimpleXMLIterator('<a><b>1</b></a>')),
            false));
        return $results;
    },
    'xml' => function (int $round) {
        $parser = xml_parser_create('UTF-8');
        $depth = 0;
        $seen = [];
        xml_parser_set_option($parser, XML_OPTION_CASE_FOLDING, 0);
        xml_set_element_handler($parser, function ($parser, $name, $attributes) use (&$depth, &$seen) {
            $seen[] = str_repeat(' ', ++$depth) . $name . implode(',', $attributes);
        }, function () use (&$depth) { --$depth; });
        $text = '';
        xml_set_character_data_handler($parser, function ($parser, $data) use (&$text) { $text .= $data; });
        foreach (str_split(library(40 + $round * 10), 77) as $part)
            xml_parse($parser, $part);
        xml_parse($parser, '', true);
        $other = xml_parser_create();
        xml_parse_into_struct($other, library(10), $values, $index);
        $broken = xml_parser_create();
        return [md5(implode("\n", $seen)), md5($text), count($values), count($index),
            xml_parse($broken, '<a></b>', true),
                xml_error_string(xml_get_error_code($broken))];
    },
    'xmlreader' => function (int $round) {
        $reader = XMLReader::XML(library(50 + $round * 10));
        $document = new DOMDocument;
        $titles = [];
        while ($reader->read())
            if ($reader->nodeType === XMLReader::ELEMENT && $reader->name === 'book') {
                $titles[] = [$reader->getAttribute('id'), strlen($reader->readInnerXml())];
                $book = $reader->expand($document);
                $titles[] = $book->firstChild->textContent;
            }
        $reader->close();
        return $titles;
    },
    'xmlwriter' => function (int $round) {
        $writer = new XMLWriter;
        $writer->openMemory();
        $writer->setIndent(true);
        $writer->startDocument('1.0', 'UTF-8');
        $writer->startElement('rows');
        for ($i = 0; $i < 200 + $round; ++$i) {
            $writer->startElementNs('p', 'row', $i % 50 ? null : 'urn:p');
            $writer->writeAttribute('number', (string)$i);
            $writer->writeCdata(str_repeat('<', $i % 9));
            $writer->writeElement('text', "ä & $i");
            $writer->endElement();
        }
        $writer->endDocument();
        return md5($writer->outputMemory());
    },
    'xsl' => function (int $round) {
        $style = new DOMDocument;
        $style->loadXML(STYLE);
        $processor = new XSLTProcessor;
        $processor->registerPHPFunctions(['strtoupper']);
        $processor->importStylesheet($style);
        $processor->setParameter('', 'from', (string)(1910 + $round));
        $document = new DOMDocument;
        $document->loadXML(library(60));
        return [md5($processor->transformToXML($document)),
            $processor->transformToDoc($document)->documentElement->nodeName];
    },
    'tidy' => function (int $round) {
        $page = tidy_parse_string('<title>x</title><p>one<b>two<p>three</i><table><tr><td>' . text($round),
                                  ['indent' => true, 'wrap' => 60, 'output-xhtml' => true], 'utf8');
        $page->cleanRepair();
        return [(string)$page, $page->errorBuffer, tidy_error_count($page), $page->body()->child[0]->name];
    },
    'soap' => function (int $round) {
        $options = ['uri' => 'urn:calculator', 'location' => 'local:'];
        $client = new LocalClient(null, $options + ['trace' => true]);
        $client->server = new SoapServer(null, ['uri' => 'urn:calculator']);
        $client->server->setClass(Calculator::class);
        $results = [$client->add(2, $round), $client->repeat(text($round % 4), 20),
            $client->__getLastResponse()];
        $results[] = $client->__soapCall('add', [new SoapVar(5, XSD_INT), 6]);
        return $results;
    },
];
