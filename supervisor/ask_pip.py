# SPDX-License-Identifier: Apache-2.0
# Runs in: a child of a service that a user starts by hand, with --packages. Prints what pip's own
# configuration says, as lines "KEY VALUE" of [packages]. pip has had these modules since its
# version 10; a pip without them is reported as missing.
try:
    from pip._internal.configuration import Configuration
    from pip._internal.models.index import PyPI
except ImportError as e:
    raise SystemExit('pip is needed for that (package python3-pip): %s' % e)
settings = Configuration(isolated=False)
settings.load()
said = dict(settings.items())


def of(name):
    places = (':env:.', 'install.', 'global.')
    return next((' '.join(said[at + name].split()) for at in places if said.get(at + name)), '')


index = of('index-url')
print('index', index or PyPI.simple_url)
print('extra_indexes', of('extra-index-url'))
print('file_hosts', '' if index else PyPI.file_storage_domain)
