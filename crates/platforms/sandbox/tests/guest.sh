#!/bin/sh
# Runs a test program as root in a virtual machine that has cgroup v2 only.
#
#   guest.sh PROGRAM [ARGUMENT...]
#
# Needs no KVM. Uses qemu-system-x86_64, busybox (static) and a Debian cloud kernel; installs or downloads with
# apt-get what is missing. WINDFALL_GUEST_KERNEL names another kernel image. Exits as the program does.
set -eu
program=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need() {
    command -v "$1" >/dev/null && return
    echo "installing $2" >&2
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends "$2"; } >&2
}
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static

kernel=${WINDFALL_GUEST_KERNEL:-}
if [ -z "$kernel" ]; then
    package=$(apt-cache depends linux-image-cloud-amd64 | grep -o 'linux-image-[0-9][^ ]*' | head -n 1)
    (cd "$work" && apt-get download "$package" >&2 && dpkg-deb -x "$package"*.deb kernel)
    kernel=$(ls "$work"/kernel/boot/vmlinuz-*)
fi

# The machine's programs and libraries, in the layout of a merged /usr.
root=$work/root
mkdir -p "$root/usr/bin" "$root/usr/lib64" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/etc" "$root/new"
ln -s usr/bin "$root/bin"
ln -s usr/bin "$root/sbin"
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
ln -s bin "$root/usr/sbin"
cp "$(command -v busybox)" "$root/usr/bin/busybox"
for name in sh kill sleep setsid mount umount mkdir cp switch_root poweroff ip cat ls; do
    ln -s busybox "$root/usr/bin/$name"
done
cp "$program" "$root/usr/bin/program"
for library in $(ldd "$program" | grep -o '/[^ ]*'); do
    mkdir -p "$root/usr/$(dirname "${library#/usr}")"
    cp -L "$library" "$root/usr/${library#/usr}"
done
mkdir -p "$root/etc/ssl"
echo "$*" > "$root/arguments"

# The root of a new machine cannot be pivoted away from, so everything moves to a file system in memory first.
cat > "$root/init" <<'INIT'
#!/bin/sh
mount -t tmpfs -o size=1g none /new
cp -a /usr /bin /sbin /lib /lib64 /etc /arguments /second /new/
mkdir -p /new/proc /new/sys /new/dev /new/tmp
exec switch_root /new /second
INIT
cat > "$root/second" <<'SECOND'
#!/bin/sh
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
chmod 1777 /tmp
cd /
program $(cat /arguments) 2>&1
echo "guest exit code $?"
poweroff -f
SECOND
ln -s busybox "$root/usr/bin/chmod"
chmod +x "$root/init" "$root/second"
(cd "$root" && busybox find . | busybox cpio -o -H newc 2>/dev/null) > "$work/initramfs"

# Without the usual devices: QEMU 7.2 crashes now and then while the kernel looks at the emulated graphics card.
timeout 1500 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -display none -nodefaults \
    -serial stdio -no-reboot \
    -kernel "$kernel" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet panic=-1 cgroup_no_v1=all psi=1" < /dev/null | tee "$work/output"
grep -q 'guest exit code 0' "$work/output"
