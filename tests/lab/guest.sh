#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Boots the lab's guest: this machine's own root file system, read-only, under a memory overlay; the folder OUT as
# /lab-host. Runs tests/lab/inside.sh there and powers off. KVM when it works, plain emulation otherwise.
# usage: guest.sh OUT TIMEOUT_S [FURTHER ARGUMENTS OF QEMU]
# Exit status: what inside.sh left, 1 when it left nothing in time, 3 when the guest stood still (OUT/.lab/stood says where).
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lab/cache.sh
. "$here/cache.sh"
[ $# -ge 2 ] || lab_die "usage: guest.sh OUT TIMEOUT_S [FURTHER ARGUMENTS OF QEMU]" "" 2
out=$(realpath "$1") timeout_s=$2 machine=("${@:3}")
kernel=$(ls "$lab_kernel_tree"/boot/vmlinuz-*)
modules=$lab_kernel_tree/lib/modules/$(lab_kernel_version)/kernel
# In the order of need.
early=(drivers/virtio/{virtio_ring,virtio,virtio_pci_modern_dev,virtio_pci_legacy_dev,virtio_pci}
    fs/{netfs/netfs,fscache/fscache} net/9p/{9pnet,9pnet_virtio} fs/{9p/9p,overlayfs/overlay})
work=$(mktemp -d)

initrd_make() {
    local tree=$work/tree module
    mkdir -p "$tree"/{bin,modules,root,proc,sys,dev}
    cp "$(command -v busybox)" "$tree/bin/busybox"
    install -m 755 "$here/init" "$tree/init"
    for module in "${early[@]}"; do
        cp "$modules/$module.ko"* "$tree/modules/" 2> /dev/null || continue # a newer kernel has some built in
        echo "${module##*/}.ko"
    done > "$tree/modules/order"
    find "$tree/modules" -name '*.xz' -exec unxz {} +
    (cd "$tree" && find . | cpio -o -H newc --quiet) > "$work/initrd"
}

# KVM may be there and still hang: it gets three seconds to boot the probe, once a boot of this machine.
accelerator_choose() {
    local known
    known=$lab_cache/accelerator-$(cat /proc/sys/kernel/random/boot_id)
    if [ ! -e "$known" ]; then
        rm -f "$lab_cache"/accelerator-*
        echo tcg,thread=multi > "$known"
        if [ -w /dev/kvm ] && timeout -k 1 3 qemu-system-x86_64 -accel kvm -cpu host -m 512 -nographic -no-reboot -nic none \
            -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1 rdinit=/init lab_probe" \
            < /dev/null 2>&1 | grep -q 'lab: probe alive'; then
            echo kvm > "$known"
        fi
    fi
    cat "$known"
}

share() { # FOLDER TAG OPTIONS
    echo "local,path=$1,mount_tag=$2,security_model=none,multidevs=remap${3:-}"
}

# Emulation feels every other process of the machine, so it goes first where that is allowed. Niceness counts within a
# session's group only, hence a session of its own, and a pid file to end it by.
guest_run() {
    exec setsid bash -c 'echo -15 2> /dev/null > /proc/self/autogroup; exec "$@"' first \
        timeout -k 5 "$timeout_s" qemu-system-x86_64 -accel "$accelerator" -cpu max -smp 2 -m 4096 -nographic -no-reboot -name lab,debug-threads=on \
        -chardev stdio,id=console,signal=off -serial chardev:console -monitor none -qmp "unix:$work/qmp,server=on,wait=off" \
        -nic none -pidfile "$work/pid" -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 panic=-1 loglevel=5 sysrq_always_enabled rdinit=/init lab_inside=$here/inside.sh" \
        -virtfs "$(share / machine ,readonly=on)" -virtfs "$(share "$out" out)" "${machine[@]}" <> "$work/keys" 2>&1
}

guest_end() {
    [ ! -e "$work/pid" ] || kill "$(cat "$work/pid")" 2> /dev/null || true
    rm -rf "$work"
}
trap guest_end EXIT
trap 'exit 130' INT TERM

initrd_make
accelerator=$(accelerator_choose)
lab_say "guest starts (kernel $(lab_kernel_version), $accelerator)"
begun=$SECONDS
rm -f "$out/.lab/stood"
mkfifo "$work/keys"
touch "$out/console.log"
"$here/guest_watch.py" --console "$out/console.log" --qmp "$work/qmp" --keys "$work/keys" --pid-file "$work/pid" \
    --stood "$out/.lab/stood" &
watch=$!
(guest_run | sed -u 's/\r$//' | tee -a "$out/console.log" | grep --line-buffered -o 'lab: .*' >&2) &
wait $! || true
wait $watch || true
lab_say "guest ended after $((SECONDS - begun)) s"
if [ ! -e "$out/.lab/status" ]; then
    [ ! -e "$out/.lab/stood" ] || exit 3
    lab_die "the guest did not come to its end (time limit $timeout_s s)" \
        "look at the last lines of $out/console.log and at the logs in $out; --timeout gives it more time"
fi
exit "$(cat "$out/.lab/status")"
