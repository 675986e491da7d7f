"""A file of small tensors, each with numbers of its own, as the makers in test_data/own_names fill them."""
import json
import struct


def write_numbered_tensors(path, shapes):
    """0, 1, ... from 2,000 times the number of the tensor on."""
    header, data = {}, b""
    for number, (name, shape) in enumerate(shapes.items()):
        count = 1
        for d in shape:
            count *= d
        values = struct.pack(f"<{count}f", *(2000 * number + i for i in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
