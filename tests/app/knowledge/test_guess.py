"""A script's names tell its site, where only one profile has them."""

from datetime import date

import pytest

from lumitui.app.knowledge.guess import guess_site
from lumitui.remote.site.profile import Account
from lumitui.remote.site.sites import BUILT_IN, Sites

KNOWN = Sites([BUILT_IN])
SITES = [KNOWN.load(name) for name in KNOWN.names()]


@pytest.mark.parametrize(
    ("lines", "site"),
    [
        ("#SBATCH -p standard-g", "lumi"),
        ("#SBATCH --partition=qgpu", "karolina"),
        ("#SBATCH -p gpu\n#SBATCH -A project_462000123", "lumi"),
        ("#SBATCH -A project_465000123", "lumi"),
        ("#SBATCH -N 1\nsrun singularity exec /appl/local/containers/sif-images/x.sif a", "lumi"),
        ("#SBATCH -p gpusmall\n#SBATCH --gres=gpu:a100:1", "mahti"),
        ("#SBATCH -p acc\n#SBATCH -q acc_debug", "mn5"),
        ("#SBATCH -A OPEN-28-55\n#SBATCH -p qgpu", "karolina"),
        ("#SBATCH -p gpusmall\n#SBATCH --gres=gpu:h100:1", None),
        ("#SBATCH -p gpu", None),
        ("#SBATCH -N 1", None),
        ("#SBATCH -p nowhere", None),
    ],
)  # fmt: skip
def test_what_only_one_profile_has_tells_the_site(lines: str, site: str | None) -> None:
    found = guess_site(f"#!/bin/bash\n{lines}\n", SITES, date(2026, 11, 23))
    assert (found.site and found.site.name) == site
    assert bool(found.because) == (site is not None)


def test_an_own_profile_with_the_same_partitions_does_not_turn_a_sites_rules_off() -> None:
    lumi = KNOWN.load("lumi")
    mine = lumi.model_copy(update={"name": "mine", "modules": (), "containers": {}})
    text = "#!/bin/bash\n#SBATCH -p standard-g -A project_462000001\n"
    found = guess_site(text, [*SITES, mine], date(2026, 11, 23), ["mine"])
    assert found.site is not None
    assert found.site.name == "lumi"
    assert "the partition standard-g" in found.because
    assert "your profile mine also fits" in found.because
    alone = guess_site(text, [mine], date(2026, 11, 23), ["mine"])
    assert alone.site is mine and "also fits" not in alone.because


def test_an_own_profile_with_the_scripts_account_as_its_default_is_meant() -> None:
    lumi = KNOWN.load("lumi")
    account = lumi.account.model_copy(update={"default": "project_462000001"})
    mine = lumi.model_copy(update={"name": "mine", "account": account})
    text = "#!/bin/bash\n#SBATCH -p standard-g -A project_462000001\n"
    found = guess_site(text, [*SITES, mine], date(2026, 11, 23), ["mine"])
    assert found.site is mine
    assert "the account project_462000001 (your profile's default)" in found.because
    assert "(the profile lumi also fits: pass --site to choose)" in found.because
    other = guess_site(text.replace("0001", "0002"), [*SITES, mine], date(2026, 11, 23), ["mine"])
    assert other.site is not None and other.site.name == "lumi"


def test_one_of_several_own_profiles_is_meant_rather_than_a_real_machine() -> None:
    lumi = KNOWN.load("lumi")
    account = lumi.account.model_copy(update={"default": "project_462000001"})
    names = ["mine", "other"]
    own = [lumi.model_copy(update={"name": name, "account": account}) for name in names]
    text = "#!/bin/bash\n#SBATCH -p standard-g -A project_462000001\n"
    found = guess_site(text, [*SITES, *own], date(2026, 11, 23), names)
    assert found.site is own[0]
    assert "lumi or other also fits: pass --site to choose)" in found.because


def test_a_complete_profile_without_a_default_account_is_meant() -> None:
    shared = KNOWN.load("lumi").model_copy(update={"name": "shared"})
    text = "#!/bin/bash\n#SBATCH -p standard-g -A project_462000001\n"
    found = guess_site(text, [*SITES, shared], date(2026, 11, 23), ["shared"])
    assert found.site is shared and "the profile lumi also fits" in found.because


def test_a_surveyed_profile_of_the_users_project_wins_over_a_bundled_one() -> None:
    """It knows no pattern and no example of an account, and the bundled site has closed."""
    mahti = KNOWN.load("mahti")
    account = Account(default="project_2001659")
    hydra = mahti.model_copy(update={"name": "hydra", "account": account})
    text = "#!/bin/bash\n#SBATCH -p gpusmall -A project_2001659 --gres=gpu:a100:1\n"
    found = guess_site(text, [*SITES, hydra], date(2026, 11, 23), ["hydra"])
    assert found.site is hydra


@pytest.mark.parametrize(
    "more", ["-A project_2009999", "-A project_2009999 --gres=gpu:a100:4", "--gpus-per-node=4"]
)
def test_a_profile_of_another_machine_wins_over_a_bundled_one_with_the_same_names(
    more: str,
) -> None:
    """The account is not its default, and its modules and images are unknown."""
    mahti = KNOWN.load("mahti")
    hosts = mahti.hosts.model_copy(update={"login": "hydra.example.org"})
    bare: dict[str, object] = {
        "modules": (),
        "containers": {},
        "retired": None,
        "account": Account(),
    }
    hydra = mahti.model_copy(update={"name": "hydra", "hosts": hosts, **bare})
    text = f"#!/bin/bash\n#SBATCH -p gpumedium {more}\n"
    found = guess_site(text, [*SITES, hydra], date(2026, 11, 23), ["hydra"])
    assert found.site is hydra
    assert ("the profile roihu also fits" in found.because) == ("a100" not in more)


def test_a_closed_site_loses_to_an_open_one_that_fits_as_well() -> None:
    karolina = KNOWN.load("karolina")
    closed = karolina.model_copy(update={"name": "closed", "retired": "2026-01-01"})
    text = "#!/bin/bash\n#SBATCH -A OPEN-28-55\n"
    assert guess_site(text, [closed, karolina], date(2026, 11, 23)).site is karolina


def test_several_clues_are_listed_with_one_and() -> None:
    text = "#SBATCH -p standard-g -A project_462000123\nsrun /appl/local/laifs/containers/x.sif\n"
    found = guess_site(f"#!/bin/bash\n{text}", SITES, date(2026, 11, 23))
    clues = "the partition standard-g, the account project_462000123 and its paths and modules"
    assert found.because == clues


def test_a_site_without_types_of_gpus_is_not_meant_by_one() -> None:
    karolina = KNOWN.load("karolina")
    typeless = karolina.node.model_copy(update={"gres_types": ()})
    other = karolina.model_copy(update={"name": "other", "node": typeless})
    text = "#!/bin/bash\n#SBATCH -A OPEN-28-55\n#SBATCH --gres=gpu:a100:1\n"
    assert guess_site(text, [other, karolina], date(2026, 11, 23)).site is karolina
