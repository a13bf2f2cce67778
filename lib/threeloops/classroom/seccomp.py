"""What the sandbox refuses of the kernel's own calls, as the small program that the kernel runs before each of them.

Keyrings belong to a user and a session, not to a sandbox: one student's code could leave a word there for the next
one's. Memory made by memfd_create is nobody's until it is mapped. The others look into processes or widen what a hole
in the kernel could be reached by; no cell of a notebook needs them.
"""

import platform
import struct

# (x86-64, AArch64), from the kernel's tables: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
REFUSED = {
    "ptrace": (101, 117),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "pidfd_getfd": (438, 438),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "unshare": (272, 97),
    "mount": (165, 40),
}
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, the kernel's AUDIT_ARCH number
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # in struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM
OTHER_ABI = 0x40000000  # x32: the same calls under other numbers


def refusals(machine: str | None = None) -> bytes:
    """The filter as bubblewrap takes it; empty for a processor whose numbers are not in the table.

    >>> len(refusals("x86_64")) // 8, refusals("riscv64")
    (22, b'')
    """
    column, architecture = ARCHITECTURES.get(machine or platform.machine(), (0, 0))
    if not architecture:
        return b""
    numbers = [pair[column] for pair in REFUSED.values()]
    program = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 0, len(numbers) + 3, architecture),  # a call in another architecture's numbers is refused
        (LOAD, 0, 0, NUMBER_AT),
        (AT_LEAST, len(numbers) + 1, 0, OTHER_ABI),
        *((EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in program)
