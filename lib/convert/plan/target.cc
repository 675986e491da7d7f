// The source's words come before the target's, in notes and in reports of damage alike.
#include "convert/plan/target.h"

#include "convert/jobs/carried_record.h"
#include "convert/open/opened.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/source_identity.h"
#include "hf/folder/assets.h"
#include "io/copy/read_sums.h"
#include "io/dcp/write/layout.h"
#include "io/safetensors/layout.h"
#include "io/store/names/dcp_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

void put_in_front(Notes& notes, Notes first) {
  first.append(std::move(notes));
  notes = std::move(first);
}

std::string identity_of(const Conversion& c, TargetIdentity& parts) {
  PlanIdentity& text = *parts.settings;
  const SourceIdentity source = parts.source.files.empty() ? source_identity(*c.store) : parts.source;
  text.add(kSourceFiles, source.files).add_times(kSourceFiles, source.times);
  const SourceIdentity beside =
      parts.beside.files.empty() ? SourceIdentity{c.beside.identity()} : parts.beside;
  text.add(kBesideFiles, beside.files).add_times(kBesideFiles, beside.times);
  return text.add(kMapping, parts.mapping).add(kResult, parts.result).text();
}

}  // namespace

void FramePlace::write_beside() const {
  if (!beside.files.empty()) beside.files.write(folder, durable);
  if (!beside.assets.empty()) beside.assets.write(cat(folder, "/", kAssetsFolder), durable);
}

void write_frame(const DcpLayout& layout, const FramePlace& to) {
  layout.write_objects(to.out);
  to.write_beside();
  OutputFiles file(to.folder, {{std::string(kDcpMetadata), 0}}, OutputFiles::Begin::kReplace);
  i64 at = 0;
  layout.write_metadata([&](std::string_view text) {
    file.write(0, at, as_bytes(text));
    at += std::ssize(text);
  });
  if (to.durable) file.sync();
}

// Without the index several files are not a model.
void write_frame(const SafetensorsLayout& layout, const FramePlace& to) {
  i32 count = static_cast<i32>(layout.files().size());
  for (i32 f = 0; f < count; f++) to.out.write(f, 0, as_bytes(layout.files()[f].header));
  to.write_beside();
  if (!layout.index().empty()) to.out.write(count, 0, as_bytes(layout.index()));
}

Conversion plan(Opened opened, const MakeTarget& make) {
  Conversion c;
  c.opened = std::make_unique<Opened>(std::move(opened));
  c.target = make(*c.opened);
  Opened& source = *c.opened;
  Target& target = *c.target;
  static_cast<Planned&>(c) = static_cast<Planned&&>(target);
  c.store = target.read;
  if (!c.store && !source.in_memory()) c.store = &source.store();
  c.sources = target.folders.empty() ? source.folders : std::move(target.folders);
  c.opening = source.opening;
  if (c.store && source.has_sums) c.sums = std::make_unique<ReadSums>();
  if (c.sums && target.object_files) expect_object_files(*c.sums, *target.object_files);
  put_in_front(c.notes, std::move(source.notes));
  put_in_front(c.details, std::move(source.left_out));
  c.oddities.insert(c.oddities.begin(), std::move_iterator(source.damage.begin()),
                    std::move_iterator(source.damage.end()));
  c.dropped_objects += source.objects;
  if (target.identified.settings) c.identity = identity_of(c, target.identified);
  if (c.store && !c.behind) note_view(c, *c.store);
  if (source.own && source.adapted) add_adapter(c, *source.adapted);
  return c;
}

}  // namespace mckpt::impl
