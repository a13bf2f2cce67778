"""What the sandbox refuses of the kernel's own calls, as the small program that the kernel runs before each of them.

Keyrings belong to a user and a session, not to a sandbox: one student's code could leave a word there for the next
one's. Memory made by memfd_create is nobody's until it is mapped, queues and semaphores of System V and a file system
of one's own are nobody's at all; a namespace of one's own gives the powers to make them. Sockets of other families
than local ones and the internet's know no network namespace (a virtual machine's VSOCK reaches its host). Whose turn
it is on a busy core is the grader's to say: code that has put itself last would be late where another's is not. The
others look into processes or widen what a hole in the kernel could be reached by; no cell of a notebook needs them.
"""

import errno
import platform
import struct

# (x86-64, AArch64), from the kernel's tables: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
REFUSED = {
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "perf_event_open": (298, 241),
    "move_pages": (279, 239),
    # memory that no limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # whose turn it is
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    # what others do
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    # large doors into the kernel
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "settimeofday": (170, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "quotactl": (179, 60),
}
OLD = {"inotify_init": 253, "modify_ldt": 154, "iopl": 172, "ioperm": 173}  # x86-64 alone has them
CLONE, CLONE3, SOCKET = (56, 220), (435, 435), (41, 198)
OWN_NAMESPACE = 0x7E020000  # the flags CLONE_NEWNS to CLONE_NEWNET
FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, the kernel's AUDIT_ARCH number
# BPF_LD|W|ABS; BPF_JMP with JEQ, JGE and JSET, each |K; BPF_RET|K
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16  # in struct seccomp_data; of an argument the lower half
ERRNO = 0x00050000  # SECCOMP_RET_ERRNO
ENDS = {"refuse": ERRNO | errno.EPERM, "unknown": ERRNO | errno.ENOSYS, "allow": 0x7FFF0000}
OTHER_ABI = 0x40000000  # x32: the same calls under other numbers
Step = tuple[int, str | int, str | int, int]  # what to do, where to go if so and if not, with which number


def column(machine: str | None = None) -> int | None:
    """Which of a call's two numbers holds on this processor; None where neither does."""
    return ARCHITECTURES.get(machine or platform.machine(), (None, 0))[0]


def refusals(machine: str | None = None) -> bytes:
    """The filter as bubblewrap takes it; empty for a processor whose numbers are not in the table.

    >>> len(refusals("x86_64")) % 8, refusals("riscv64")
    (0, b'')
    """
    place, architecture = ARCHITECTURES.get(machine or platform.machine(), (0, 0))
    if not architecture:
        return b""
    numbers = [pair[place] for pair in REFUSED.values()] + ([] if place else list(OLD.values()))
    steps: list[Step] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 0, "refuse", architecture),  # a call in another architecture's numbers is refused
        (LOAD, 0, 0, NUMBER_AT),
        (AT_LEAST, "refuse", 0, OTHER_ABI),
        *((EQUAL, "refuse", 0, number) for number in numbers),
        # its arguments lie in memory, which no filter reads: without it, libraries take clone
        (EQUAL, "unknown", 0, CLONE3[place]),
        (EQUAL, 0, 2, CLONE[place]),
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
        (ANY_BIT, "refuse", "allow", OWN_NAMESPACE),
        (EQUAL, 0, "allow", SOCKET[place]),
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
        *((EQUAL, "allow", 0, family) for family in FAMILIES),
    ]
    return _packed([*steps, *((RETURN, 0, 0, value) for value in ENDS.values())])


def _packed(steps: list[Step]) -> bytes:
    """The program with its jumps counted out; after the last family comes the refusal."""
    ends = {name: len(steps) - len(ENDS) + number for number, name in enumerate(ENDS)}

    def distance(here: int, to: str | int) -> int:
        return to if isinstance(to, int) else ends[to] - here - 1

    return b"".join(
        struct.pack("HBBI", do, distance(here, yes), distance(here, no), number)
        for here, (do, yes, no, number) in enumerate(steps)
    )
