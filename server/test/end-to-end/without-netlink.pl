#!/usr/bin/env perl
# Starts the program of BROWSER_PROGRAM without netlink sockets. Linux reports new and removed addresses of the machine over them,
# and Chromium then ends every open request with ERR_NETWORK_CHANGED. Other tests add networks while a page loads.
# Needs no privilege. Where the kernel has no seccomp, the program starts as it is.
use strict;
use warnings;
use POSIX ();

# By machine: its name in seccomp, and the numbers of the system calls socket and prctl.
my %MACHINES = (x86_64 => [0xC000003E, 41, 157], aarch64 => [0xC00000B7, 198, 167]);
my ($PR_SET_NO_NEW_PRIVS, $PR_SET_SECCOMP, $SECCOMP_MODE_FILTER) = (38, 22, 2);
my ($LOAD, $JUMP_UNLESS, $RETURN) = (0x20, 0x15, 0x06);
my ($AT_NUMBER, $AT_MACHINE, $AT_FIRST_ARGUMENT) = (0, 4, 16);
my $AF_NETLINK = 16;
my ($REFUSE_AS_UNSUPPORTED, $ALLOW) = (0x00050000 | 97, 0x7FFF0000);

sub refuse_netlink {
  my ($machine, $socket, $prctl) = @{ $MACHINES{ (POSIX::uname())[4] } // return };
  # The third member is how many instructions are skipped when the value differs: all ways lead to the last.
  my $program = join '', map { pack 'SCCL', @$_ } (
    [$LOAD, 0, 0, $AT_MACHINE],        [$JUMP_UNLESS, 0, 5, $machine],
    [$LOAD, 0, 0, $AT_NUMBER],         [$JUMP_UNLESS, 0, 3, $socket],
    [$LOAD, 0, 0, $AT_FIRST_ARGUMENT], [$JUMP_UNLESS, 0, 1, $AF_NETLINK],
    [$RETURN, 0, 0, $REFUSE_AS_UNSUPPORTED],
    [$RETURN, 0, 0, $ALLOW],
  );
  my $filter = pack 'S x![P] P', length($program) / 8, $program;
  return if syscall($prctl, $PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0;
  syscall($prctl, $PR_SET_SECCOMP, $SECCOMP_MODE_FILTER, $filter, 0, 0);
}

refuse_netlink();
exec { $ENV{BROWSER_PROGRAM} } $ENV{BROWSER_PROGRAM}, @ARGV or die "$ENV{BROWSER_PROGRAM}: $!\n";
