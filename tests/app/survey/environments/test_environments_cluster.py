"""The mini cluster's images, asked through the real connection what they hold."""

from lumitui.app.runs import Runs
from lumitui.app.survey.environments.image_contents import image_version


def test_every_image_answers_and_is_asked_once(cluster_runs: Runs) -> None:
    environments = cluster_runs.environments
    listing = environments.images("minilumi")
    named = {one.path.rpartition("/")[2]: one for one in listing.images}
    assert "lumi-multitorch-latest.sif" in named
    assert {one.generation for one in listing.images} == {"laif", "legacy"}
    for image in listing.images:
        assert image_version(image, "torch") and image_version(image, "python"), image
    (requests,) = cluster_runs.requests().values()
    asked = sum(one.kind == "images" for one in requests)
    assert asked == 1
    # What is known is kept: the same again without a request, and a refresh starts no image.
    assert environments.images("minilumi") == listing
    again = environments.images("minilumi", refresh=True)
    assert again.images == listing.images and again.at > listing.at
