"""Megatron-Core and TransformerEngine's Python on CPU ranks: stand-ins for what needs a GPU. Import this before either.

Real stay all modules that allocate parameters, all groups of ranks (over gloo) and the code that distributes weights; no
forward pass is run. Stand-ins are the compiled extensions of TransformerEngine (a name of them is a fake) and the device:
where code says "cuda", it gets "cpu".
"""
import contextlib
import enum
import importlib.machinery
import importlib.util
import os
import sys
import types

import torch
from torch.overrides import TorchFunctionMode

os.environ.setdefault("NVTE_PROJECT_BUILDING", "1")  # TransformerEngine then looks for no libraries


class FakeMeta(type):
    """A class all of whose attributes are numbers of their own: an enum of the extension."""
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = len(cls.__dict__)
        setattr(cls, name, value)
        return value

    def __iter__(cls):
        return iter(())


class FakeModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = FakeMeta(name, (), {"__init__": lambda self, *a, **k: None, "__module__": self.__name__})
        setattr(self, name, made)
        return made


def fake(name):
    module = FakeModule(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = module
    return module


def load_transformer_engine():
    names = "kByte kInt32 kFloat32 kFloat16 kBFloat16 kFloat8E4M3 kFloat8E5M2 kFloat4E2M1"
    fake("transformer_engine_torch").DType = enum.IntEnum("DType", names.split(), start=0)
    spec = importlib.util.find_spec("transformer_engine")
    package = types.ModuleType("transformer_engine")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["transformer_engine"] = package
    import transformer_engine.common as common
    common.load_framework_extension = lambda name: None
    del sys.modules["transformer_engine"]
    import transformer_engine
    transformer_engine.common = common
    import transformer_engine.pytorch as te
    te.cpp_extensions.get_cudnn_version = lambda: 91900
    import transformer_engine.pytorch.attention.dot_product_attention.dot_product_attention as core
    core.get_cudnn_version = lambda: (9, 19, 0)


class OnTheHost(TorchFunctionMode):
    """Tensors that are asked for on a GPU are made on the host."""
    def __torch_function__(self, function, _types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if "device" in kwargs and is_gpu(kwargs["device"]):
            kwargs["device"] = "cpu"
        args = tuple("cpu" if is_gpu(a) else a for a in args)
        kwargs.pop("pin_memory", None)
        if function is torch.Tensor.cuda:
            return args[0]
        return function(*args, **kwargs)


def is_gpu(device):
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, str) and (device == "cuda" or device.startswith("cuda:"))


def no_gpu():
    torch.cuda.current_device = lambda: "cpu"
    torch.cuda.set_device = lambda *a: None
    torch.cuda.synchronize = lambda *a: None
    torch.cuda.empty_cache = lambda *a: None
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_capability = lambda *a: (9, 0)
    torch.cuda.get_device_properties = lambda *a: types.SimpleNamespace(major=9, minor=0, multi_processor_count=1)
    for place in (torch.cuda, torch.cuda.random):
        place.get_rng_state = lambda *a, **k: torch.get_rng_state()
        place.set_rng_state = lambda *a, **k: None
        place.manual_seed = lambda *a: None
    torch.cuda._lazy_call = lambda f: None
    torch.cuda._lazy_init = lambda: None
    torch.cuda.is_initialized = lambda: False

    class Stream:
        def __init__(self, *a, **k):
            pass

        def wait_stream(self, *a):
            pass

        def synchronize(self):
            pass
    torch.cuda.Stream = torch.cuda.Event = Stream
    torch.cuda.current_stream = torch.cuda.default_stream = lambda *a: Stream()
    torch.cuda.stream = lambda *a: contextlib.nullcontext()
    OnTheHost().__enter__()


def no_gpu_for_fsdp():
    """Megatron-FSDP names the GPU in a device and in its meshes."""
    from megatron.core.distributed.fsdp.src.megatron_fsdp import megatron_fsdp
    from torch.distributed import DeviceMesh

    shim = types.ModuleType("torch")
    shim.__dict__.update(torch.__dict__, device=lambda *a: torch.device("cpu"))
    megatron_fsdp.torch = shim
    real = DeviceMesh.from_group
    DeviceMesh.from_group = staticmethod(lambda *a, **k: real(*a, **{**k, "device_type": "cpu"}))


no_gpu()
load_transformer_engine()
torch.cuda.is_available = lambda: True  # TransformerEngine's modules refuse to be made otherwise
