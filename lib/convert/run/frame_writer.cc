// The order matters: the file by which a reader recognizes a complete checkpoint is written last. Without the
// index several files are not a model, and a DCP folder without .metadata is not a checkpoint.
#include "convert/run/frame_writer.h"

#include "convert/keys/rank_plan.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "hf/assets.h"
#include "io/copy/tensor_copy.h"
#include "io/copy/written_sums.h"
#include "io/dcp/write/layout.h"
#include "io/hdf5/archive_layout.h"
#include "io/safetensors/layout.h"
#include "io/torch/layout.h"

namespace mckpt::impl {
namespace {

constexpr const char* kMetadata = ".metadata";

std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

// One function for each kind of layout. Refers to its arguments.
class FrameWriter {
 public:
  FrameWriter(const FsdpFolder::Beside& beside, OutputFiles& out, const std::string& folder, bool durable,
              const WrittenSums& sums)
      : beside_(beside), out_(out), folder_(folder), durable_(durable), sums_(sums) {}

  void operator()(const DcpLayout* layout) const {
    layout->write_objects(out_);
    write_beside();
    OutputFiles file(folder_, {{kMetadata, 0}}, OutputFiles::Begin::kReplace);
    i64 at = 0;
    layout->write_metadata([&](std::string_view text) {
      file.write(0, at, as_bytes(text));
      at += std::ssize(text);
    });
    if (durable_) file.sync();
  }

  void operator()(const SafetensorsLayout* layout) const {
    i32 count = static_cast<i32>(layout->files().size());
    for (i32 f = 0; f < count; f++) out_.write(f, 0, as_bytes(layout->files()[f].header));
    write_beside();
    if (!layout->index().empty()) out_.write(count, 0, as_bytes(layout->index()));
  }

  void operator()(const TorchResult& torch) const {
    for (const TorchLayout::Piece& p : torch.layout->frame(torch.copy->crc32s()))
      out_.write(0, p.offset, p.bytes);
  }

  // The end of an archive lists its records: without it a file cannot be loaded.
  void operator()(const RankPlan* plan) const {
    const WrittenSums::ByPlace sums = sums_.by_place();
    write_beside();
    for (i32 f = 0; f < static_cast<i32>(plan->file_count()); f++) {
      const TorchLayout& layout = plan->layout(f);
      std::vector<u32> crc32s(static_cast<std::size_t>(layout.tensor_count()));
      for (i64 t = 0; t < layout.tensor_count(); t++)
        if (layout.data_bytes(t) > 0) crc32s[t] = sums.crc32(f, layout.data_offset(t));
      for (const TorchLayout::Piece& p : layout.frame(crc32s)) out_.write(f, p.offset, p.bytes);
    }
  }

  // The index has sums of all data, and the user block, by which a reader finds it, is written last.
  void operator()(const ArchiveLayout* layout) const {
    const WrittenSums::ByPlace sums = sums_.by_place();
    write_beside();
    layout->write(out_, [&](i64 part, i64 offset) { return sums.crc32(static_cast<i32>(part), offset); });
  }

  void operator()(std::monostate) const { write_beside(); }

 private:
  void write_beside() const {
    if (!beside_.files.empty()) beside_.files.write(folder_, durable_);
    if (!beside_.assets.empty()) beside_.assets.write(cat(folder_, "/", kAssetsFolder), durable_);
  }

  const FsdpFolder::Beside& beside_;
  OutputFiles& out_;
  const std::string& folder_;
  bool durable_;
  const WrittenSums& sums_;
};

}  // namespace

void write_frame(const Conversion& conversion, OutputFiles& out, const std::string& folder, bool durable,
                 const WrittenSums& sums) {
  std::visit(FrameWriter(conversion.beside, out, folder, durable, sums), conversion.layout);
}

}  // namespace mckpt::impl
