"""A processor with AVX-512 in software: calls functions of libraries that this process has loaded but cannot run.

Needs `pip install bochscpu-python`, the processor of the emulator Bochs as a library, on Linux; its wheels of version
0.4.0 need glibc 2.38.
"""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from bochscpu import Hook, Segment, Session, State
from bochscpu.cpu import set_long_mode
from bochscpu.memory import page_insert

PAGE = 2**12
LARGE_PAGE = 2**30
TOP_TABLE = PAGE  # physical address of the first page table; the others follow
PRESENT, LARGE = (
    0x7,
    0x80,
)  # of an entry of a page table: may be read, written and executed; has no further table
CONTROL_0 = 0x8001_0033  # paging, protection, floating point
CONTROL_4 = 0x4_0620  # large addresses, SSE, extended registers
EXTENDED = 0xE7  # registers up to those of AVX-512
MASKED = 0x1F80  # floating-point exceptions are not raised, as usual
CODE, DATA = 0x209B, 0x0C93  # kinds of segments, of the kernel's privilege so that a halt is allowed
HALT, RETURN = b"\xf4", b"\xc3"
# mov r11, next; mov rax, [r11]; add rdi, 63; and rdi, -64; add [r11], rdi; ret
ALLOCATE = b"\x49\xbb%b" + bytes.fromhex("498b03 4883c73f 4883e7c0 49013b c3")


class Processor:
    """Runs in the memory of this process: virtual addresses are the same inside and outside.

    Only malloc and free are others there, as those of this process may be in use while it emulates.
    """

    def __init__(self) -> None:
        self._session = Session()
        self._session.missing_page_handler = self._insert_page
        self._hook = Hook()
        self._hook.hlt = lambda *_: self._session.stop()
        self._hook.exception = self._stop_at_exception
        self._exception: str | None = None
        self._tables: list[Any] = []
        self._next_tables: dict[int, Any] = {}
        self._large_pages: list[int] = [0]  # virtual by physical number; the tables are in the first
        self._top = self._new_table()
        self._stack, self._heap, self._end = pages(2**8), pages(2**14), pages(1)
        self._thread = pages(1)  # where compilers look for the guard of the stack
        self._next_on_heap = np.array([self._heap.ctypes.data], dtype=np.uint64)
        self._replaced: dict[int, Any] = {}
        process = ctypes.CDLL(None)
        next_address = self._next_on_heap.ctypes.data.to_bytes(8, "little")
        self._replace(address_of(process.malloc), ALLOCATE % next_address)
        self._replace(address_of(process.free), RETURN)
        self._replace(self._end.ctypes.data, HALT)

    def call(self, function: Any, *arguments: int | ctypes.Array[Any] | None) -> int:
        """Call with integers, addresses and arrays, and return an integer."""
        self._map_memory()
        self._heap[: int(self._next_on_heap[0]) - self._heap.ctypes.data] = 0xFF  # not a number
        self._next_on_heap[0] = self._heap.ctypes.data
        self._session.cpu.state = self._state(
            address_of(function), [as_integer(given) for given in arguments]
        )
        self._exception = None
        self._session.run([self._hook])
        if self._exception:
            raise RuntimeError(self._exception)
        if self._next_on_heap[0] > self._heap.ctypes.data + len(self._heap):
            raise MemoryError("The emulated function needs more memory than it has.")
        return ctypes.c_int64(self._session.cpu.state.rax).value

    def _state(self, function: int, arguments: list[int]) -> State:
        state = State()
        set_long_mode(state)
        state.cr0, state.cr3, state.cr4 = CONTROL_0, TOP_TABLE, CONTROL_4
        state.xcr0, state.mxcsr, state.rflags = EXTENDED, MASKED, 2
        state.cs = segment(CODE)
        state.ds = state.es = state.ss = state.gs = segment(DATA)
        state.fs = segment(DATA, self._thread.ctypes.data)
        for register, value in zip(("rdi", "rsi", "rdx", "rcx", "r8", "r9"), arguments, strict=False):
            setattr(state, register, value)
        # Where to return to, then the other arguments, at a multiple of 16.
        on_stack = np.array([self._end.ctypes.data, *arguments[6:]], dtype=np.uint64)
        at = len(self._stack) - PAGE - 8
        self._stack[at : at + on_stack.nbytes] = on_stack.view(np.uint8)
        state.rsp, state.rip = self._stack.ctypes.data + at, function
        return state

    def _map_memory(self) -> None:
        """Give all memory of this process page tables; pages themselves are looked up when they are used."""
        for line in Path("/proc/self/maps").read_text().splitlines():
            low, high = (int(address, 16) for address in line.split()[0].split("-"))
            for number in range(low // LARGE_PAGE, min(-(-high // LARGE_PAGE), 2**17)):
                top, place = divmod(number, 512)
                if top not in self._next_tables:
                    self._top[top] = TOP_TABLE + PAGE * len(self._tables) | PRESENT
                    self._next_tables[top] = self._new_table()
                if not self._next_tables[top][place]:
                    self._next_tables[top][place] = len(self._large_pages) * LARGE_PAGE | LARGE | PRESENT
                    self._large_pages.append(number)

    def _new_table(self) -> Any:
        table = pages(1).view(np.uint64)
        page_insert(TOP_TABLE + PAGE * len(self._tables), table.ctypes.data)
        self._tables.append(table)
        return table

    def _insert_page(self, physical: int) -> None:
        number, place = divmod(physical // PAGE * PAGE, LARGE_PAGE)
        virtual = self._large_pages[number] * LARGE_PAGE + place
        replaced = self._replaced.get(virtual)
        page_insert(number * LARGE_PAGE + place, virtual if replaced is None else replaced.ctypes.data)

    def _replace(self, address: int, code: bytes) -> None:
        place = address % PAGE
        page = self._replaced.setdefault(address - place, pages(1))
        page[place : place + len(code)] = np.frombuffer(code, dtype=np.uint8)

    def _stop_at_exception(self, session: Session, processor: int, vector: int, code: int) -> None:
        state = self._session.cpu.state
        self._exception = f"Exception {vector} ({code}) at {state.rip:#x}, address {state.cr2:#x}."
        self._session.stop()


def as_integer(given: int | ctypes.Array[Any] | None) -> int:
    return ctypes.addressof(given) if isinstance(given, ctypes.Array) else int(given or 0)


def pages(n: int) -> Any:
    """Zeros that fill whole pages."""
    memory = np.zeros((n + 1) * PAGE, dtype=np.uint8)
    skipped = -memory.ctypes.data % PAGE
    return memory[skipped : skipped + n * PAGE]


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def segment(kind: int, base: int = 0) -> Segment:
    """Memory from an address on."""
    segment = Segment()
    segment.present, segment.selector, segment.base, segment.limit, segment.attr = (
        True,
        8,
        base,
        2**32 - 1,
        kind,
    )
    return segment
