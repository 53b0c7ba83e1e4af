#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# doctor: what a machine has for GPUs, with drivers and machines that are not there.
. "$(dirname "$0")/common"
unset TUTTI_SYSFS_ROOT TUTTI_NVML_LIB TUTTI_CUDA_LIB TUTTI_CUDA_KERNELS CUDA_VISIBLE_DEVICES NO_COLOR
fakes=$BUILD/tests/cuda
[ -e "$fakes/libfake_cuda_apart.so" ] || {
	echo "there is no driver on host memory"
	exit 77
}
host=$(ls "$BUILD"/lib*/tutti/cuda/libcuda.so.1)

# A machine that has GPUs of NVIDIA, or none.
machine=$tmp/machine
mkdir -p "$machine/sys/bus/pci/devices"

# function PATH VENDOR CLASS: a PCI function below sys/devices
add()
{
	mkdir -p "$machine/sys/devices/$1"
	echo "$2" >"$machine/sys/devices/$1/vendor"
	echo "$3" >"$machine/sys/devices/$1/class"
	head -c "${4:-4096}" /dev/zero >"$machine/sys/devices/$1/config"
	ln -sfn "../../../devices/$1" "$machine/sys/bus/pci/devices/${1##*/}"
}

# put PATH OFFSET BYTES: into the configuration of a function, as printf has them
put()
{
	# shellcheck disable=SC2059 # bytes are a format
	printf "$3" | dd of="$machine/sys/devices/$1/config" bs=1 seek=$(($2)) conv=notrunc \
		2>/dev/null
}

# -- Without GPUs ---------------------------------------------------------------------

if ! ls /dev/nvidiactl >/dev/null 2>&1; then
	expect 0 "$TUTTI" doctor
	says out '^driver +note +no GPU driver: Tutti uses host memory$'
	says out '^nothing is wrong$'
	lines err 0
fi
expect 0 env TUTTI_SYSFS_ROOT="$machine" "$TUTTI" doctor
says out '^driver +note +a captured machine, whose driver cannot be asked$'
expect 0 env TUTTI_SYSFS_ROOT="$machine" "$TUTTI" doctor --json
lines out 1
says out '^\{"format":1,"checks":\[\{"check":"driver","health":"note".*"devices":\[\],"access":\[\]\}$'
expect 2 "$TUTTI" doctor GPU
ok "no driver is no error"

# -- Drivers that do not work ---------------------------------------------------------

broken()
{
	expect 1 env TUTTI_CUDA_LIB="$1" "$TUTTI" doctor
	says out "^driver +error .*$2"
	says out '^ +so +no rank can have a device$'
	says out '^1 error$'
}
broken /nonexistent.so 'cannot be loaded'
broken "$fakes/libfake_cuda_none.so" 'is no driver of CUDA'
broken "$fakes/libfake_cuda_few.so" 'is older than CUDA 12.0'
broken "$fakes/libfake_cuda_ancient.so" 'is of CUDA 11.8'
broken "$fakes/libfake_cuda_broken.so" 'SYSTEM_NOT_READY.*nvidia-fabricmanager'
ok "drivers that do not work"

# -- The driver on host memory --------------------------------------------------------

export TUTTI_CUDA_LIB="$host" TUTTI_CUDAHOST_GPUS=2
expect 0 env TUTTI_CUDA_KERNELS="$fakes/libfake_kernels_all.so" "$TUTTI" doctor
says out '^driver +note +.*: 2 devices that are host memory'
says out '^kernels +good +.*libfake_kernels_all.so, 0'
says out '^GPU 1 +good +Tutti host memory at 0000:02:00.0, .*shared by file descriptors$'
says out '^peer access +good +each GPU reaches memory of each other$'
says out '^nothing is wrong$'
expect 1 env TUTTI_CUDA_KERNELS="$fakes/libfake_kernels_all.so" CUDA_LAUNCH_BLOCKING=1 "$TUTTI" doctor
says out '^CUDA_LAUNCH_BLOCKING +warning +it is 1: a launch returns once its kernel has ended$'
expect 1 env TUTTI_CUDA_KERNELS=/nonexistent.so "$TUTTI" doctor
says out '^kernels +error +/nonexistent.so is not there$'
says out '^ +do +.*TUTTI_CUDA_KERNELS$'
says out '^1 error$'
expect 1 env TUTTI_CUDAHOST_GPUS=0 "$TUTTI" doctor
says out '(no device|has none|NO_DEVICE)'
ok "the driver on host memory"

# -- Devices with troubles ------------------------------------------------------------

cat >"$tmp/nvml" <<END
driver 580.82.07
gpu 00000000:3B:00.0 sm=90 gib=80 name=Fake0 persistent=0
gpu 00000000:3C:00.0 sm=90 gib=80 name=Fake1 persistent=1
gpu 00000000:3D:00.0 sm=90 gib=80 name=Fake2 persistent=1 mig
nop2p 0 2 3
END
export TUTTI_CUDA_LIB="$fakes/libfake_cuda_apart.so" TUTTI_SYSFS_ROOT="$machine"
export TUTTI_NVML_LIB="$BUILD/tests/libfake_nvml.so" FAKE_NVML="$tmp/nvml"
expect 1 "$TUTTI" doctor
says out '^driver +good +CUDA 13.0 of .*libfake_cuda_apart.so, 4 devices$'
says out '^GPU 0 +good +Fake 0 at 0000:3b:00.0, compute capability 9.0, 80.0 GiB, memory shared by file descriptors$'
says out '^GPU 0 +note +processes share it by MPS'
says out '^GPU 0 +warning +persistence mode is off$'
says out '^ +do +start nvidia-persistenced, or nvidia-smi -i 0000:3b:00.0 -pm 1$'
says out "^GPU 1 +good .*shared by CUDA's older handles$"
says out '^GPU 1 +note +its compute mode is EXCLUSIVE_PROCESS$'
says out '^GPU 2 +error +its compute mode is PROHIBITED$'
says out '^GPU 2 +warning +it is cut into instances \(MIG\)$'
says out "^GPU 3 +error +it is too old for Tutti's kernels$"
says out '^peer access +warning +10 of 12 pairs do not reach each other; GPU 0 to GPU 2: they hang on different I/O hubs$'
says out '^1 +yes +- +no +no$'
says out '^IMEX +note '
says out '^streams +note +those of a process share 8 connections of each GPU$'
# Without nvcc there is no file of kernels beside the program.
says out '^(2|3) errors, 3 warnings$'
expect 1 "$TUTTI" doctor --json
says out '"access":\[\[true,true,false,false\],\[true,true,false,false\],\[false,false,true,false\],'
says out '"busid":"0000:3b:00.0","uuid":"f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0","capability":90,'
expect 1 env CUDA_DEVICE_MAX_CONNECTIONS=32 "$TUTTI" doctor
grep -q '^streams' "$tmp/out" && fail "too few connections where there are 32"
ok "devices with troubles"

# -- The system -----------------------------------------------------------------------

root=pci0000:3a/0000:3a:00.0/0000:3a:01.0
add pci0000:3a/0000:3a:00.0 0x1000 0x060400
add "$root" 0x1000 0x060400
add "$root/0000:3b:00.0" 0x10de 0x030200
add "$root/0000:3c:00.0" 0x10de 0x030200
expect 1 env TUTTI_CUDA_LIB="$fakes/libfake_cuda_broken.so" "$TUTTI" doctor
says out '^IOMMU +good +it is off$'
says out '^GPUDirect RDMA +note '
grep -q '^ACS' "$tmp/out" && fail "ACS where no port of a switch is"
ok "an IOMMU that is off"

# A downstream port of a switch, which redirects requests (0x1d: bits 2 and 3).
put "$root" 0x34 '\100'
put "$root" 0x40 '\020\000\142\000'
put "$root" 0x100 '\015\000\001\000\000\000\035\000'
for gpu in 3b 3c; do
	mkdir "$machine/sys/devices/$root/0000:$gpu:00.0/iommu_group"
	echo DMA-FQ >"$machine/sys/devices/$root/0000:$gpu:00.0/iommu_group/type"
done
expect 1 "$TUTTI" doctor
says out '^IOMMU +warning +it translates addresses of 2 of 2 GPUs \(DMA-FQ\)$'
says out '^ +do +boot with iommu=pt'
says out '^ACS +warning +1 of 1 ports of PCI switches above GPUs redirect requests, as 0000:3a:01.0$'
says out '^ +do +.*setpci -s 0000:3a:01.0 ECAP_ACS\+6.w=0'
ok "an IOMMU and ACS in the way"

put "$root" 0x106 '\021'
for gpu in 3b 3c; do
	echo identity >"$machine/sys/devices/$root/0000:$gpu:00.0/iommu_group/type"
done
expect 1 "$TUTTI" doctor
says out '^IOMMU +good +addresses of GPUs pass through it$'
says out '^ACS +good +no port of a PCI switch redirects requests$'
add "$root" 0x1000 0x060400 64
expect 1 "$TUTTI" doctor
says out '^ACS +note +the settings of PCI bridges cannot be read$'
ok "an IOMMU and ACS that are not, and settings that only root sees"

add pci0000:3a/0000:3a:02.0 0x10de 0x068000
expect 1 env TUTTI_CUDA_LIB="$fakes/libfake_cuda_broken.so" "$TUTTI" doctor
says out '^NVSwitch +error +1, and the fabric manager does not run$'
mkdir -p "$machine/run/nvidia-fabricmanager" "$machine/proc/driver/nvidia"
echo 17 >"$machine/run/nvidia-fabricmanager/nv-fabricmanager.pid"
echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build' \
	>"$machine/proc/driver/nvidia/version"
expect 1 "$TUTTI" doctor
says out '^NVSwitch +good +1, and the fabric manager runs$'
says out '^driver +good +CUDA 13.0 .*, kernel module 580.82.07, open, 4 devices$'
ok "NVSwitch, and the module's version"
