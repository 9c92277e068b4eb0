# SPDX-License-Identifier: MIT
# strings.pl ROUNDS: words, hashes, sorting and substitution.
use strict;
use warnings;

my $rounds = shift // 1000;
my ($seed, $sum, %count) = (1, 0);

sub next_word {
	$seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
	return join '', map { chr(97 + ($seed >> $_) % 26) } 3, 7, 11, 13;
}

sub fold_line {
	my ($line) = @_;
	$line =~ s/([aeiou])([a-z])/uc($1) . $2/ge;
	$count{$_}++ for split / /, $line;
	return $line =~ tr/A-Z//;
}

for my $round (1 .. $rounds) {
	my @words = map { next_word() } 1 .. 40;
	$sum += fold_line(join ' ', @words);
	my @sorted = sort { $b cmp $a || length $a <=> length $b } @words;
	$sum += index $sorted[0], 'z';
	%count = () if keys %count > 20000;
}
print "$sum\n";
