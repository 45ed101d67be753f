"""A keyed bijection of range(n) that is computed place by place, forward and back."""

from hashlib import blake2b

ROUNDS = 4


def _mix(key: str, turn: int, half: int, mask: int) -> int:
    digest = blake2b(f"{key}:{turn}:{half}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & mask


def _halves(n: int) -> tuple[int, int]:
    bits = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    return bits, (1 << bits) - 1


def forward(key: str, n: int, place: int) -> int:
    """Where `place` goes: a balanced Feistel network over the next even power of two, walked until inside range(n)."""
    bits, mask = _halves(n)
    while True:
        left, right = place >> bits, place & mask
        for turn in range(ROUNDS):
            left, right = right, left ^ _mix(key, turn, right, mask)
        place = left << bits | right
        if place < n:
            return place


def backward(key: str, n: int, place: int) -> int:
    """The place that `forward` sends to `place`."""
    bits, mask = _halves(n)
    while True:
        left, right = place >> bits, place & mask
        for turn in reversed(range(ROUNDS)):
            left, right = right ^ _mix(key, turn, left, mask), left
        place = left << bits | right
        if place < n:
            return place
