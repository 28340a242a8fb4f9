"""Trees that several threads want at once."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

from lumitui.app.knowledge.program.syntax_tree import tree_of


def test_threads_get_their_trees_while_memory_is_collected() -> None:
    text = "\n".join(f"x{number} = f(a[{number}], [b, (c, d)])" for number in range(300))

    def let_others_run(_phase: str, _counts: dict[str, int]) -> None:
        time.sleep(0.0001)

    before = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(200, 100, 100)
    try:
        with ThreadPoolExecutor(4) as threads:
            trees = list(threads.map(tree_of, [text] * 40))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(let_others_run)
    assert {len(tree.body) for tree in trees} == {300}
