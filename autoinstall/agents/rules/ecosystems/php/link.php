<?php
// Makes composer take Debian's packages of PHP libraries for installed ones: arguments are name=version=package.
$vendor = getcwd() . '/vendor';
is_dir("$vendor/composer") || mkdir("$vendor/composer", 0755, true);
is_dir("$vendor/bin") || mkdir("$vendor/bin", 0755, true);
$installed = [];
foreach (array_slice($argv, 1) as $argument) {
    [$name, $version, $package] = explode('=', $argument);
    $files = [];
    exec('dpkg -L ' . escapeshellarg($package) . ' 2>/dev/null', $files);
    foreach (preg_grep('#^/usr/bin/#', $files) as $program) {
        $link = "$vendor/bin/" . basename($program);
        file_exists($link) || symlink($program, $link);
    }
    $loaders = array_filter(preg_grep('#^/usr/share/php/.*/autoload\.php$#', $files), 'is_file');
    // A test runner brings its own loader; loaded twice it would fight with the project's classes.
    if (!$loaders || preg_grep('#^/usr/bin/#', $files)) {
        continue;
    }
    usort($loaders, fn ($a, $b) => strlen($a) <=> strlen($b));
    $place = "$vendor/$name";
    is_dir(dirname($place)) || mkdir(dirname($place), 0755, true);
    file_exists($place) || symlink(dirname($loaders[0]), $place);
    $installed[] = [
        'name' => $name, 'version' => $version, 'version_normalized' => $version, 'type' => 'library',
        'autoload' => ['files' => ['autoload.php']], 'install-path' => "../$name",
    ];
}
$content = ['packages' => $installed, 'dev' => true, 'dev-package-names' => []];
file_put_contents("$vendor/composer/installed.json", json_encode($content, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES));
echo count($installed), " libraries of Debian's are linked.\n";
