#include "tools/folder_manifest.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "io/file/folder.h"
#include "io/verify/manifest_check.h"

namespace mckpt {
namespace {

template <typename T>
void gather(std::vector<T>& mine, Comm& comm) {
  Gathered all = comm.all_gather_v(std::as_bytes(std::span(mine)));
  if (comm.rank() != 0) return;
  mine.resize(all.bytes.size() / sizeof(T));
  std::memcpy(mine.data(), all.bytes.data(), all.bytes.size());
}

}  // namespace

void gather_sums(WrittenSums& sums, Comm& comm) {
  if (comm.size() == 1) return;
  gather(sums.data(), comm);
  gather(sums.stretches(), comm);
}

void gather_sums(PartSums& sums, Comm& comm) {
  if (comm.size() > 1) gather(sums.parts(), comm);
}

void write_manifest(const std::string& folder, std::vector<ManifestFile> summed, bool durable) {
  std::string text = make_manifest(folder, std::move(summed), MCKPT_VERSION).text();
  OutputFiles out(folder, {{std::string(kManifestName), std::ssize(text)}}, OutputFiles::Begin::kReplace);
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  if (durable) out.sync();
}

}  // namespace mckpt
