"""safetensors: files of all types that its torch binding writes, with and without metadata."""

import torch
from common import SAFETENSORS, Case, main, values


def files(out):
    from safetensors.torch import save_file
    case = Case(out, "all_types", src="src.safetensors", no_export=True, form="all types of torch")
    tensors = {f"t.{str(t)[6:]}": values(str(t), (3, 4), torch.float32 if t.is_floating_point else t).to(t) for t in SAFETENSORS}
    tensors.update(scalar=torch.tensor(1.5), none=torch.zeros(0, 2))
    save_file(tensors, case.at("src.safetensors"), metadata={"format": "pt"})
    case.answer("expected_raw", tensors)


if __name__ == "__main__":
    main(["safetensors"], files)
