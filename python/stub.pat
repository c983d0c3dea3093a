# What nanobind's stub generator does not write: the version, and exceptions, which it takes for imports.
moka._moka.__prefix__:
    __version__: str

moka._moka.Error:
    class Error(RuntimeError): ...

moka._moka.InvalidArgumentError:
    class InvalidArgumentError(Error, ValueError): ...

moka._moka.(.+Error):
    class \1(Error): ...
