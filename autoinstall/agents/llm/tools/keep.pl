# Copies stdin to stdout until a marker comes; of more than SPARE bytes also the first LIMIT bytes into FILE.
binmode STDIN;
binmode STDOUT;
my ($file, $marker, $spare, $limit) = @ARGV;
my ($held, $early, $kept, $out) = ('', '', 0, undef);
sub put {
  my $all = shift;
  for (my $done = 0; $done < length $all;) {
    my $count = syswrite STDOUT, $all, length($all) - $done, $done;
    exit 1 unless defined $count;
    $done += $count;
  }
  return if $kept >= $limit;
  $all = substr $all, 0, $limit - $kept;
  $kept += length $all;
  if (!$out) {
    $early .= $all;
    return if length $early <= $spare;
    open $out, '>:raw', $file or ($kept = $limit, return);
    $all = $early;
    $early = '';
  }
  syswrite $out, $all;
}
while (sysread STDIN, my $data, 65536) {
  $data = $held . $data;
  if ((my $end = index $data, $marker) >= 0) {
    put(substr $data, 0, $end);
    last;
  }
  # Only what may be the beginning of the marker is held back.
  my $hold = length($marker) - 1;
  $hold = length $data if $hold > length $data;
  $hold-- while $hold && substr($data, -$hold) ne substr($marker, 0, $hold);
  $held = $hold ? substr($data, -$hold) : '';
  put(substr $data, 0, length($data) - $hold);
}
