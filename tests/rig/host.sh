# Becomes the first process of a host: its own files over the machine's, its own /dev, /run, /tmp and /root.
# host.sh DIR NAME MASK [SOURCE:TARGET]...   (in fresh mount, PID, UTS and IPC namespaces)
set -eu
dir=$1 name=$2 mask=$3
shift 3
read -r pid rest </proc/self/stat # /proc is still the machine's: this is the PID that the machine knows
root=$dir/merged
mkdir -p "$dir/upper" "$dir/work" "$root" "$dir/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,gid=5,mode=620 devpts dev/pts
for spec in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    IFS=: read -r file major minor <<NODE
$spec
NODE
    mknod -m 666 "dev/$file" c "$major" "$minor"
done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=1777,size=2g shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount --bind "$dir/root" root
for share in "$@"; do # what the host may use of the machine, read-only
    target=${share#*:}
    mkdir -p ".$target"
    mount --bind "${share%%:*}" ".$target"
    mount -o remount,bind,ro ".$target"
done
# The checkout is not on the hosts, or a test would find there what it forgot to send.
[ ! -d ".$mask" ] || mount -t tmpfs -o ro,size=4k none ".$mask"
mkdir run/old run/sshd
pivot_root . run/old
cd /
umount -l /run/old
rmdir /run/old
hostname "$name"
ip link set lo up
chmod 700 /root
/usr/sbin/sshd -f /etc/ssh/rig_sshd_config
echo "$pid"
exec </dev/null >/dev/null 2>&1
# PID 1: reaps every orphan; a signal from inside the host cannot end it.
exec /bin/dash -c 'while :; do sleep infinity & wait; done'
