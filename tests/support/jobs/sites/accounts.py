"""Accounts that could be somebody's own: a profile's example stands for one, and is refused."""

from lumitui.remote.site.profile import Site

_OWN = {"lumi": "project_462000001", "roihu": "project_2001659", "puhti": "project_2001659",
        "mahti": "project_2001659", "karolina": "open-00-01", "mn5": "ehpc01", "alps": "a0001",
        "frontier": "ABC124", "leonardo": "EUHPC_X00_001"}  # fmt: skip


def own_account(site: Site) -> str:
    """Return an account at `site`; none where it needs none."""
    if not site.account.required:
        return "none"
    return site.account.default or _OWN[site.name]
