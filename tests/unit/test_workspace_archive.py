import io
import os
import socket
import tarfile
from pathlib import Path

from autoinstall.sandbox.workspace import archive


def test_a_tree_is_packed_as_it_is_and_owned_by_root(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "a").mkdir(parents=True)
    root.chmod(0o700)
    (root / "a/script").write_bytes(b"x" * 3_000_001)
    (root / "a/script").chmod(0o700)
    (root / "ünï").write_text("y", encoding="utf-8")
    os.utime(root / "ünï", (1, 1_000_000_000))
    (root / "out").symlink_to("/etc/passwd")
    (root / "dir").symlink_to("a")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(root)))) as tar:
        members = {member.name: member for member in tar}
        script = tar.extractfile("workspace/a/script")
        assert script is not None
        assert script.read() == b"x" * 3_000_001
    assert members.keys() == {"workspace", *(f"workspace/{name}" for name in ("a", "a/script", "ünï", "out", "dir"))}
    assert all((member.uid, member.gid) == (0, 0) for member in members.values())
    assert members["workspace"].mode == members["workspace/a/script"].mode == 0o755
    assert members["workspace/ünï"].mode == 0o644
    assert members["workspace/ünï"].mtime == 1_000_000_000
    assert members["workspace/out"].linkname == "/etc/passwd"
    assert members["workspace/dir"].issym()
