package Mcp::Json;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# JSON::PP, which reads strings a character at a time, without the long ones:
# a message of megabytes is read in milliseconds instead of seconds, in which
# its reader would take and answer nothing.

use strict;
use warnings;

use JSON::PP;

my $json = JSON::PP->new->utf8->canonical->allow_nonref->allow_blessed
    ->convert_blessed;

# what stands for itself in a string
my $plain = qr/[ !#-\[\]-~]/;


sub encode { $json->encode($_[0]) }


# dies if it is no JSON

sub decode {
    my ($text) = @_;

    if (defined $text && length $text > 2000 && index($text, "\x7f") < 0) {
        my @long;

        # the first characters may belong to an escape
        my $short = $text =~ s{($plain{8})($plain{1000,})}{
            push @long, $2;
            "$1\x7f$#long\x7f";
        }gexr;

        # what was no part of a string is read as it is
        my $value = @long ? eval { [$json->decode($short)] } : undef;

        return restore($value, \@long)->[0] if $value;
    }

    return $json->decode($text);
}


sub restore {
    my ($value, $long) = @_;

    if (ref $value eq 'ARRAY') {
        $_ = restore($_, $long) for @$value;

    } elsif (ref $value eq 'HASH') {
        %$value = map { restore($_, $long) } %$value;

    } elsif (!ref $value && defined $value && index($value, "\x7f") >= 0) {
        $value =~ s/\x7f(\d+)\x7f/$long->[$1]/g;
    }

    return $value;
}


1;
