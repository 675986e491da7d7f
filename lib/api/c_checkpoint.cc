// Checkpoints of the C interface. The lists of the table are made with the handle; paths of stretches are
// made when they are asked for, one for each file.
#include "mckpt/c_checkpoint.h"

#include <mutex>
#include <set>
#include <unordered_map>

#include "api/boundary.h"
#include "api/c_call.h"
#include "api/public_json.h"
#include "api/settings.h"

// A name that ends at its NUL would be another tensor's, and the names behind it would belong to the tensors
// before them.
static void refuse_nul(const std::string& name) {
  if (name.find('\0') == name.npos) return;
  throw mckpt::impl::to_public(
      mckpt::impl::Error(mckpt::impl::Code::kOddName,
                         "the name of a tensor holds a NUL, at which C and Python end a text")
          .tensor(name)
          .help("rename the tensor; the program and C++ read it as it is"));
}

// The tensors as lists, in natural order of their names.
struct TensorLists {
  std::string names, dtypes;  // each text is ended by '\0'
  std::vector<std::size_t> name_at, dtype_at, shape_at;
  std::vector<std::int64_t> ranks, shapes, bytes, in_files;

  explicit TensorLists(const mckpt::Checkpoint& c) {
    std::unordered_map<std::string, std::int64_t> numbers;
    for (const std::string& name : c.names()) {
      refuse_nul(name);
      mckpt::Tensor t = c.tensor(name);
      numbers.emplace(name, std::ssize(ranks));
      name_at.push_back(names.size()), dtype_at.push_back(dtypes.size()), shape_at.push_back(shapes.size());
      names += t.name, names += '\0';
      dtypes += t.dtype, dtypes += '\0';
      ranks.push_back(std::ssize(t.shape));
      shapes.insert(shapes.end(), t.shape.begin(), t.shape.end());
      bytes.push_back(t.bytes);
    }
    for (const std::string& name : c.names_in_file_order()) in_files.push_back(numbers.at(name));
  }

  std::string_view name(std::int64_t number) const {
    std::size_t begin = name_at[number];
    std::size_t end = number + 1 < std::ssize(name_at) ? name_at[number + 1] : names.size();
    return std::string_view(names).substr(begin, end - begin - 1);
  }
};

struct mckpt_checkpoint {
  mckpt::Checkpoint checkpoint;
  TensorLists tensors{checkpoint};
  mutable std::mutex mutex{};             // of `files`
  mutable std::set<std::string> files{};  // that stretches have named

  explicit mckpt_checkpoint(mckpt::Checkpoint c) : checkpoint(std::move(c)) {}
};

namespace {

using mckpt::impl::c_given;
using mckpt::impl::c_result;
using mckpt::impl::c_status;
using mckpt::impl::c_written;

std::string_view slice_text(const char* slice) { return slice ? slice : ""; }

// Opens with the settings of Options.
template <typename Options, typename Open>
mckpt_checkpoint* opened(const char* path, const char* const* settings, mckpt_error** error, Open&& open) {
  return c_result(error, static_cast<mckpt_checkpoint*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    Options options;
    read(s, options);
    s.refuse_rest();
    return new mckpt_checkpoint(open(c_given(path, "path"), options));
  });
}

}  // namespace

mckpt_checkpoint* mckpt_open(const char* path, const char* const* settings, mckpt_error** error) {
  return opened<mckpt::OpenOptions>(path, settings, error, mckpt::open);
}

mckpt_checkpoint* mckpt_open_as_fsdp(const char* path, const char* const* settings, mckpt_error** error) {
  return opened<mckpt::SourceOptions>(path, settings, error, mckpt::open_as_fsdp);
}

mckpt_checkpoint* mckpt_open_local(const char* path, const char* const* settings, mckpt_error** error) {
  return opened<mckpt::OpenOptions>(path, settings, error, mckpt::open_local);
}

void mckpt_checkpoint_free(mckpt_checkpoint* c) { delete c; }

const char* mckpt_checkpoint_format(const mckpt_checkpoint* c) { return c->checkpoint.format().data(); }

char* mckpt_checkpoint_json(const mckpt_checkpoint* c, mckpt_error** error) {
  return c_written(error, [&](std::string& to) { mckpt::impl::write_json(to, c->checkpoint); });
}

char* mckpt_writer_json(const mckpt_checkpoint* c, mckpt_error** error) {
  return c_written(error, [&](std::string& to) { to = c->checkpoint.writer_json(); });
}

char* mckpt_objects_json(const mckpt_checkpoint* c, mckpt_error** error) {
  return c_written(error, [&](std::string& to) { mckpt::impl::write_json(to, c->checkpoint.objects()); });
}

char* mckpt_object_literal(const mckpt_checkpoint* c, const char* name, mckpt_error** error) {
  return c_written(
      error, [&](std::string& to) { to = c->checkpoint.object_literal(c_given(name, "name")).value_or(""); });
}

int64_t mckpt_tensor_count(const mckpt_checkpoint* c) { return std::ssize(c->tensors.ranks); }

mckpt_tensor mckpt_tensor_at(const mckpt_checkpoint* c, int64_t number) {
  const TensorLists& t = c->tensors;
  return {t.names.c_str() + t.name_at[number], t.dtypes.c_str() + t.dtype_at[number],
          static_cast<std::size_t>(t.ranks[number]), t.shapes.data() + t.shape_at[number], t.bytes[number]};
}

int mckpt_tensor_table(const mckpt_checkpoint* c, mckpt_table* to, mckpt_error** error) {
  return c_status(error, [&] {
    const TensorLists& t = c->tensors;
    *c_given(to, "table") = {std::ssize(t.ranks), t.names.data(),       std::ssize(t.names),
                             t.dtypes.data(),     std::ssize(t.dtypes), t.ranks.data(),
                             t.shapes.data(),     t.bytes.data(),       t.in_files.data()};
  });
}

int64_t mckpt_matching(const mckpt_checkpoint* c, const char* glob, int64_t* to, mckpt_error** error) {
  return c_result(error, int64_t{-1}, [&] {
    // The matching names are some of all names, in the same order.
    const TensorLists& t = c->tensors;
    int64_t count = 0, number = 0;
    for (const std::string& name : c->checkpoint.names(c_given(glob, "glob"))) {
      while (name != t.name(number)) number++;
      c_given(to, "list of numbers")[count++] = number++;
    }
    return count;
  });
}

char* mckpt_chunks_json(const mckpt_checkpoint* c, const char* name, mckpt_error** error) {
  return c_written(error, [&](std::string& to) {
    mckpt::impl::write_json(to, c->checkpoint.chunks(c_given(name, "name")));
  });
}

char* mckpt_statistics_json(const mckpt_checkpoint* c, const char* name, int threads, mckpt_error** error) {
  return c_written(error, [&](std::string& to) {
    mckpt::impl::write_json(to, c->checkpoint.statistics(c_given(name, "name"), threads));
  });
}

char* mckpt_slice_statistics_json(const mckpt_checkpoint* c, const char* name, const char* slice,
                                  mckpt_error** error) {
  return c_written(error, [&](std::string& to) {
    mckpt::impl::write_json(to, c->checkpoint.slice_statistics(c_given(name, "name"), slice_text(slice)));
  });
}

char* mckpt_digest(const mckpt_checkpoint* c, const char* name, mckpt_error** error) {
  return c_written(error, [&](std::string& to) { to = c->checkpoint.digest(c_given(name, "name")); });
}

int64_t mckpt_read_bytes(const mckpt_checkpoint* c, const char* name, const char* slice,
                         mckpt_error** error) {
  return c_result(error, int64_t{-1},
                  [&] { return c->checkpoint.sliced(c_given(name, "name"), slice_text(slice)).bytes; });
}

int mckpt_read(const mckpt_checkpoint* c, const char* name, const char* slice, void* to, int64_t bytes,
               mckpt_error** error) {
  return c_status(error, [&] {
    if (bytes < 0)
      throw mckpt::impl::Error(mckpt::impl::Code::kUsage, "the size of the memory is negative")
          .expected("the bytes of mckpt_read_bytes()")
          .found(mckpt::impl::cat(bytes, " bytes"));
    if (bytes > 0) c_given(to, "memory");  // a tensor without items needs none
    c->checkpoint.read_into(c_given(name, "name"), slice_text(slice),
                            {static_cast<std::byte*>(to), static_cast<std::size_t>(bytes)});
  });
}

int mckpt_tensor_stretch(const mckpt_checkpoint* c, const char* name, mckpt_stretch* to,
                         mckpt_error** error) {
  return c_status(error, [&] {
    *c_given(to, "stretch") = {nullptr, 0};
    std::optional<mckpt::TensorStretch> stretch = c->checkpoint.stretch(c_given(name, "name"));
    if (!stretch) return;
    std::lock_guard lock(c->mutex);
    *to = {c->files.insert(std::move(stretch->file)).first->c_str(), stretch->offset};
  });
}
