// The table as an array, and the readers of folders that need a word more than their function.
#include "io/store/driver.h"

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/store/dcp_dialect.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/names/zero_names.h"
#include "io/store/open/file_look.h"
#include "io/store/open/folder_look.h"
#include "io/store/open/format_ids.h"
#include "io/store/open/item_folder.h"
#include "io/store/open/leads.h"
#include "io/store/open/verl_layout.h"
#include "io/store/store.h"

namespace mckpt::impl {

#define OPENER(name) std::unique_ptr<Store> name(const std::string& path, const OpenOptions& opening);
#define DRIVER(id, ...)
#include "io/store/open/drivers.inc"

namespace {

// Files of torch.save beside safetensors files are not part of that model. If it cannot be opened, the error
// names them.
std::unique_ptr<Store> open_safetensors_of(const FolderLook& look) {
  try {
    return open_safetensors_folder(look.folder.path(), look.folder.opening());
  } catch (Error& e) {
    if (!look.torch_files.empty())
      e.note(
          cat("there are also files of torch.save in the folder, each of which can be opened by its name: ",
              listed(look.torch_files)));
    throw;
  }
}

constexpr Driver kDrivers[] = {
#define DRIVER(id, ...) {.format = Format::id, __VA_ARGS__},
#include "io/store/open/drivers.inc"
};

}  // namespace

std::span<const Driver> all_drivers() { return kDrivers; }
const Driver& driver_of(Format format) { return kDrivers[static_cast<std::size_t>(format)]; }
FormatFamily format_family(Format format) { return driver_of(format).family; }
std::string_view format_text(Format format) { return driver_of(format).name; }

}  // namespace mckpt::impl
