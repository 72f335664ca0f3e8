#!/bin/sh
# Ignition labels what it writes wherever /etc/selinux exists, as it does on Debian. The kernel of a lab machine knows no labels.
exec cat > /dev/null
