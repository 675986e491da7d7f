// Opens one torch file as a store. A file that one of several ranks wrote has pieces of tensors; alone, it
// shows the whole tensors with the piece that is there.
#include "core/base/error.h"
#include "io/file/file.h"
#include "io/torch/lone_file.h"
#include "io/torch/store.h"

namespace mckpt::impl {
std::unique_ptr<Store> open_torch_file(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&]() -> std::unique_ptr<Store> {
    InputFile file(path, opening);
    TorchFile torch = read_torch_file(file);
    auto store = std::make_unique<TorchStore>(path, torch.format, opening);
    for (auto& [name, value] : torch.facts) store->add_fact(name, std::move(value));
    i32 index = store->add_file("", file.size(), std::move(torch));
    add_lone_file(*store, index);
    return store;
  });
}

}  // namespace mckpt::impl
