"""Workflows and actions of GitHub as trees: their files, and their steps."""
import os

from mckpt_tests.checks import need

need("yaml")
import yaml

from mckpt_tests.setting import SOURCE


class Loader(yaml.SafeLoader):
    """YAML as GitHub reads it: `on` is a word, and a key that is there twice is an error."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{sorted(twice)} more than once", node.start_mark)
        return super().construct_mapping(node, deep)


Loader.yaml_implicit_resolvers = {
    first: [(tag, words) for tag, words in resolvers if tag != "tag:yaml.org,2002:bool"] for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(text):
    return yaml.load(text, Loader)


def load_file(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as f:
        return load(f.read())
