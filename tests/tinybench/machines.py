"""Made-up machines: what files each has, what changes while one looks, and what a check must warn of."""

from __future__ import annotations

from tests.tinybench.machine_files import CLOCKS, CPU, GROUPS, SUPPLY, Files, Machine, governed, ticks
from tinybench.support.conditions.library_kernels import Blas

AVX_512 = "fpu sse2 avx avx2 fma avx512f avx512dq avx512bw avx512vl avx512cd"
SOME_TIME_LATER = {"proc/stat": ticks(1002, 90_198)}
PAIRS = {CPU + f"/cpu{core}/topology/thread_siblings_list": f"{core % 2},{core % 2 + 2}" for core in range(4)}
NO_POWER_FILES: Files = dict.fromkeys(
    [
        f"{CPU}/intel_pstate/no_turbo",
        *governed(4, "", "", energy_performance_preference=""),
        *(f"{CPU}/cpu{core}/thermal_throttle/core_throttle_count" for core in range(4)),
    ]
)
V1 = {
    "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc",
    "proc/self/mountinfo": (
        "40 30 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
        "41 30 0:31 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory"
    ),
    GROUPS + "cpu,cpuacct/cpu.cfs_period_us": "100000",
}
MAC = {
    "pmset -g batt": "Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t100%; charged; 0:00 remaining",
    "pmset -g": "System-wide power settings:\nCurrently in use:\n standby 1\n lowpowermode 0",
    "pmset -g therm": "Note: No thermal warning level has been recorded\nCPU_Speed_Limit \t= 100",
    "sysctl -n hw.nperflevels": "1",
    "sysctl -n hw.perflevel0.logicalcpu": "4",
    "sysctl -n sysctl.proc_translated": "0",
    "sysctl -n kern.hv_vmm_present": "0",
}
BALANCED = "Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)"
ON_BATTERY = {SUPPLY + "AC/online": "0", SUPPLY + "BAT0/type": "Battery", SUPPLY + "BAT0/status": "Discharging"}

MACHINES: dict[str, Machine] = {
    "quiet server": Machine(later=SOME_TIME_LATER),
    "laptop on battery": Machine(
        {"battery", "governor", "turbo", "SMT"},
        files={
            **governed(4, "powersave", "intel_pstate", energy_performance_preference="balance_power"),
            f"{CPU}/intel_pstate/no_turbo": "0",
            **PAIRS,
            **ON_BATTERY,
            SUPPLY + "hidpp_battery_0/type": "Battery",
            SUPPLY + "hidpp_battery_0/scope": "Device",
        },
        later=SOME_TIME_LATER,
        says=("taskset -c 0-1 ", "echo 1 | sudo tee", "energy_performance_preference", "plug it in"),
    ),
    "laptop with intel_pstate's powersave, and a mouse that discharges": Machine(
        files={
            **governed(4, "powersave", "intel_pstate", energy_performance_preference="balance_performance"),
            SUPPLY + "BAT0/type": "Battery",
            SUPPLY + "BAT0/status": "Charging",
            SUPPLY + "mouse/type": "Battery",
            SUPPLY + "mouse/scope": "Device",
            SUPPLY + "mouse/status": "Discharging",
        },
        later=SOME_TIME_LATER,
    ),
    "old desktop with acpi-cpufreq's powersave": Machine(
        {"governor", "turbo"},
        files={**NO_POWER_FILES, **governed(4, "powersave", "acpi-cpufreq"), f"{CPU}/cpufreq/boost": "1"},
        later=SOME_TIME_LATER,
        says=("lowest clock rate", "scaling_governor", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"),
    ),
    "laptop with intel_pstate in passive mode, where powersave is the usual one": Machine(
        {"governor"},
        files=governed(4, "powersave", "intel_cpufreq", energy_performance_preference="balance_performance"),
        later=SOME_TIME_LATER,
        says=("lowest clock rate",),
    ),
    "laptop with amd-pstate-epp's powersave": Machine(
        files=governed(4, "powersave", "amd-pstate-epp", energy_performance_preference="performance"),
        later=SOME_TIME_LATER,
    ),
    "container v2 with half a core": Machine(
        {"quota", "stopped"},
        files={
            **NO_POWER_FILES,
            ".dockerenv": "",
            "proc/self/cgroup": "0::/",
            GROUPS + "cpu.max": "50000 100000",
            GROUPS + "cpu.stat": "usage_usec 12\nnr_periods 100\nnr_throttled 40\nthrottled_usec 9",
        },
        later={
            **SOME_TIME_LATER,
            GROUPS + "cpu.stat": "usage_usec 15\nnr_periods 105\nnr_throttled 44\nthrottled_usec 99",
        },
        says=("0.5 of 4 cores", "in 80 % of the periods", "docker update --cpus"),
    ),
    "container v1 with a quota of two cores, and four threads": Machine(
        {"quota", "threads"},
        files={**V1, GROUPS + "cpu,cpuacct/cpu.cfs_quota_us": "200000"},
        later=SOME_TIME_LATER,
        process={"threads": 4},
        says=("2 of 4 cores", "up to 4 in linear algebra, on 2 cores", "OMP_NUM_THREADS=2"),
    ),
    "container on a machine with turbo": Machine(
        {"turbo"},
        files={".dockerenv": "", f"{CPU}/intel_pstate/no_turbo": "0"},
        later=SOME_TIME_LATER,
        says=("on the host: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",),
    ),
    "container v1 without a quota": Machine(
        files={**V1, GROUPS + "cpu,cpuacct/cpu.cfs_quota_us": "-1"}, later=SOME_TIME_LATER
    ),
    "pod in nested groups, of which a middle one is tightest": Machine(
        {"quota"},
        files={
            "proc/self/cgroup": "0::/kubepods.slice/pod7.slice/cri-1.scope",
            GROUPS + "kubepods.slice/cpu.max": "390000 100000",
            GROUPS + "kubepods.slice/pod7.slice/cpu.max": "75000 50000",
            GROUPS + "kubepods.slice/pod7.slice/cri-1.scope/cpu.max": "max 100000",
            GROUPS + "kubepods.slice/pod7.slice/cpu.stat": "nr_periods 7\nnr_throttled 3",
        },
        later=SOME_TIME_LATER,
        says=("1.5 of 4 cores", "pod's resources"),
    ),
    "NUMA server with two nodes": Machine(
        {"NUMA"},
        cores=16,
        files={"sys/devices/system/node/node0/cpulist": "0-7", "sys/devices/system/node/node1/cpulist": "8-15"},
        later=SOME_TIME_LATER,
        says=("numactl --cpunodebind=0 --membind=0",),
    ),
    "NUMA server, bound to its second node": Machine(
        cores=16,
        usable=tuple(range(8, 16)),
        files={"sys/devices/system/node/node0/cpulist": "0-7", "sys/devices/system/node/node1/cpulist": "8-15"},
        later=SOME_TIME_LATER,
    ),
    "SMT on": Machine({"SMT"}, files=PAIRS, later=SOME_TIME_LATER, says=("4 threads on 2 cores", "smt/control")),
    "SMT on, bound to one of each pair": Machine(usable=(0, 1), files=PAIRS, later=SOME_TIME_LATER),
    "hybrid laptop": Machine(
        {"kinds of cores", "turbo"},
        cores=8,
        files={
            "sys/devices/cpu_core/cpus": "0-3",
            "sys/devices/cpu_atom/cpus": "4-7",
            f"{CPU}/intel_pstate/no_turbo": "0",
        },
        later=SOME_TIME_LATER,
        says=("2: 0-3 and 4-7", "taskset -c 0-3 "),
    ),
    "kernel for older processors that a variable asks for": Machine(
        {"kernel"},
        files={"proc/cpuinfo": f"flags : {AVX_512}"},
        later=SOME_TIME_LATER,
        process={"settings": {"OPENBLAS_CORETYPE": "Haswell"}},
        says=(
            "Haswell (openblas 0.3.31 of numpy)",
            "leaves out AVX-512",
            "unset OPENBLAS_CORETYPE",
            "OPENBLAS_CORETYPE=Haswell",
        ),
    ),
    "one of two libraries was built for older processors": Machine(
        {"kernel"},
        files={"proc/cpuinfo": f"flags : {AVX_512}"},
        later=SOME_TIME_LATER,
        process={
            "blas": [
                Blas("libopenblas.so.0", "openblas 0.3.9", "Prescott", 1),
                Blas("numpy", "openblas 0.3.31", "SkylakeX", 1),
            ]
        },
        says=("Prescott (openblas 0.3.9 of libopenblas.so.0)", "leaves out AVX-512", "conda-forge"),
    ),
    "kernel whose name nobody knows": Machine(
        files={"proc/cpuinfo": f"flags : {AVX_512}"},
        later=SOME_TIME_LATER,
        process={"blas": [Blas("numpy", "openblas 0.4", "Zen9", 1), Blas("mkl", "mkl 2026", "", 1)]},
        says=("Zen9 (openblas 0.4 of numpy)", "kernel not reported (mkl 2026 of mkl)"),
    ),
    "instructions that variables forbid": Machine(
        {"instructions"},
        later=SOME_TIME_LATER,
        process={"settings": {"NPY_DISABLE_CPU_FEATURES": "AVX2"}, "limits": ["NPY_DISABLE_CPU_FEATURES"]},
        says=("NPY_DISABLE_CPU_FEATURES=AVX2", "unset NPY_DISABLE_CPU_FEATURES"),
    ),
    "noisy neighbour": Machine(
        {"stolen", "load", "waiting"},
        files={
            "proc/loadavg": "9.50 8.00 7.00 12/300 77",
            "proc/pressure/cpu": "some avg10=61.25 avg60=50.00 avg300=40.00 total=1",
            "proc/cpuinfo": "processor : 0\nflags : fpu tsc hypervisor avx2",
        },
        later={"proc/stat": ticks(1100, 90_060, steal=40)},
        says=("of 4 cores busy", "61 % of the last 10 s", "the hypervisor took", "another time"),
    ),
    "swapping": Machine(
        {"swapping", "memory"},
        files={
            "proc/pressure/memory": "some avg10=12.00 avg60=3.00 avg300=1.00 total=1",
            "proc/meminfo": "MemTotal: 4000000 kB\nMemAvailable: 90000 kB\nSwapTotal: 2000000 kB\nSwapFree: 10 kB",
        },
        later={**SOME_TIME_LATER, "proc/vmstat": "pgfault 12\npswpin 900\npswpout 400"},
        says=("2000 pages/s", "2.2 % left"),
    ),
    "virtual machine with hpet": Machine(
        {"clock source"},
        files={
            **NO_POWER_FILES,
            CLOCKS + "current_clocksource": "hpet",
            CLOCKS + "available_clocksource": "hpet acpi_pm",
            "proc/cpuinfo": "flags : fpu hypervisor",
        },
        later=SOME_TIME_LATER,
        says=("a hypervisor that offers",),
    ),
    "virtual machine without a clock source": Machine(
        files={**NO_POWER_FILES, CLOCKS + "current_clocksource": None, CLOCKS + "available_clocksource": None},
        later=SOME_TIME_LATER,
    ),
    "cloud instance that could have tsc": Machine(
        {"clock source"},
        files={CLOCKS + "current_clocksource": "xen", CLOCKS + "available_clocksource": "xen tsc hpet"},
        later=SOME_TIME_LATER,
        says=("echo tsc | sudo tee",),
    ),
    "WSL": Machine(
        {"WSL"},
        files={
            **NO_POWER_FILES,
            "proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2",
            CLOCKS + "current_clocksource": "hyperv_clocksource_tsc_page",
        },
        later=SOME_TIME_LATER,
        says=("/mnt",),
    ),
    "too hot": Machine(
        {"heat", "slowed"},
        files={"sys/class/thermal/cooling_device0/cur_state": "3"},
        later={**SOME_TIME_LATER, f"{CPU}/cpu2/thermal_throttle/core_throttle_count": "19"},
        says=("7 times", "fan"),
    ),
    "ARM board of two kinds of cores, on a weak power supply": Machine(
        {"kinds of cores", "governor", "slowed"},
        files={
            **NO_POWER_FILES,
            **governed(4, "ondemand", "cpufreq-dt"),
            **{f"{CPU}/cpu{core}/cpu_capacity": "1024" if core > 1 else "446" for core in range(4)},
            "sys/devices/platform/soc/soc:firmware/get_throttled": "50005",
            "proc/cpuinfo": "processor : 0\nFeatures : fp asimd\nCPU part : 0xd08",
        },
        later=SOME_TIME_LATER,
        says=("2-3 and 0-1", "taskset -c 2-3 ", "power supply"),
    ),
    "one small core, run by a profiler under nice": Machine(
        {"cores", "priority", "Python", "spinning", "clock"},
        cores=1,
        later=SOME_TIME_LATER,
        process={
            "priority": "nice 10",
            "python": ["a profiler"],
            "spinning": ["OMP_WAIT_POLICY=ACTIVE"],
            "clock_step": 0.0156,
        },
        says=("nice 10", "steps of 15.6 ms", "unset OMP_WAIT_POLICY", "calibrate_loops"),
    ),
    "Mac at its desk": Machine(system="Darwin", release="24.1.0", answers=MAC),
    "Mac in a café": Machine(
        {"battery", "power plan", "kinds of cores", "Rosetta", "slowed", "load"},
        system="Darwin",
        busy=0.9,
        answers={
            **MAC,
            "pmset -g batt": "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t61%; discharging",
            "pmset -g": "Currently in use:\n lowpowermode         1",
            "pmset -g therm": "CPU_Speed_Limit \t= 70",
            "sysctl -n hw.nperflevels": "2",
            "sysctl -n hw.perflevel0.logicalcpu": "2",
            "sysctl -n hw.perflevel1.logicalcpu": "2",
            "sysctl -n sysctl.proc_translated": "1",
        },
        says=("1.8 of 4 cores busy", "pmset -a lowpowermode 0", "taskpolicy -b", "arm64"),
    ),
    "Mac that answers nothing": Machine(system="Darwin"),
    "Windows": Machine(system="Windows", process={"unplugged": False}, answers={"powercfg /getactivescheme": BALANCED}),
    "Windows on a train": Machine(
        {"battery", "power plan"},
        system="Windows",
        process={"unplugged": True},
        answers={"powercfg /getactivescheme": "GUID des Energieschemas: A1841308-3541-4fab-bc81-f71556f20b4a (Strom)"},
        says=("powercfg /setactive",),
    ),
}
