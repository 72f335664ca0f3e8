#!/bin/bash
# machine.sh DIRECTORY PROGRAM: boots a machine twice on one disk and keeps what the test wants to see.
# Runs in a mount namespace of its own, so all mounts vanish with it.
set -eu
directory=$1 program=$2
mkdir -p "$directory"/{disk,root,units,kept}
mount -t tmpfs disk "$directory/disk"
mkdir "$directory"/disk/{upper,work}
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/disk/upper,workdir=$directory/disk/work" "$directory/root"
mount --bind "$directory/units" "$directory/root/etc/systemd/system"
rm -rf "$directory/root/var/lib/cloud" "$directory/root/var/lib/metalshift"
cp -a "$directory/image/." "$directory/root/"
echo test-machine > "$directory/root/etc/hostname"
mkdir -p "$directory/root/old"
# The tools of the machine are the test program, too; its own words are not part of the answer.
cat > "$directory/root/usr/local/bin/systemctl" <<TOOL
#!/bin/sh
LAB_INIT_TEST_ARGUMENTS="\$*" exec "$program" --exact tool_of_a_machine --nocapture
TOOL
chmod 755 "$directory/root/usr/local/bin/systemctl"

group=/sys/fs/cgroup/systemd/lab-init-test-$$
if mkdir "$group" 2>/dev/null; then
  trap 'cd /; sleep 0.1; rmdir "$group/system.slice" "$group" 2>/dev/null || true' EXIT
  tracked=yes
fi

for number in 1 2; do
  export number directory program tracked=${tracked:-} group
  unshare --mount --pid --uts --net --ipc --fork --kill-child /bin/bash -eu -c '
    if [ -n "$tracked" ]; then echo $$ > "$group/cgroup.procs"; fi
    exec unshare --cgroup /bin/bash -eu -c "
      mount --rbind \"$directory/root\" \"$directory/root\"; mount --rbind /dev \"$directory/root/dev\"
      cd \"$directory/root\"; pivot_root . old; cd /
      mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs run /run; ip link set lo up; hostname test-machine
      if [ -n \"$tracked\" ]; then
        mount -t tmpfs groups /sys/fs/cgroup; mkdir /sys/fs/cgroup/systemd; mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
        export LAB_INIT_TEST_CONTROL_GROUPS=/sys/fs/cgroup
      fi
      umount -l /old
      export LAB_INIT_TEST_ROOT=/
      exec \"$program\" --exact role_of_a_machine --nocapture --test-threads=1
    "' > "$directory/console.$number" 2>&1 &
  machine=$!
  for _ in $(seq 600); do
    if [ -e "$directory/root/var/lib/metalshift/boot.json" ] || ! kill -0 "$machine" 2>/dev/null; then break; fi
    sleep 0.1
  done
  cp "$directory/root/var/lib/metalshift/boot.json" "$directory/boot.json.$number" || true
  cp "$directory/root/var/lib/cloud/instances/one/user-data.txt" "$directory/root/var/lib/metalshift/seen-user-data" 2>/dev/null || true
  rm -f "$directory/root/var/lib/metalshift/boot.json"
  for child in $(cat "/proc/$machine/task/$machine/children" 2>/dev/null); do kill -TERM "$child"; done
  for _ in $(seq 200); do
    kill -0 "$machine" 2>/dev/null || break
    sleep 0.1
  done
  # Takes the machine with it.
  kill -KILL "$machine" 2>/dev/null || true
  wait "$machine" || true
done
cp -a "$directory/root/var/lib/metalshift/." "$directory/kept/"
