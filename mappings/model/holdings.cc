// A row is looked at once, with the shapes that its sources have by the config.
#include "mappings/model/holdings.h"

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/source_parts.h"
#include "mappings/model/walk.h"
#include "mappings/row.h"

namespace mckpt::impl {

Holding holding_of(const ModelConfig& model, const TowerConfig& tower, const Row& row, Part part, i64 expert,
                   i64 vocab_rows) {
  std::vector<GlobalShape> shapes;
  for (const Source& source : row.sources)
    for (i64 n = 0; !source.name.empty() && n < parts_of(source, model); n++)
      shapes.push_back({shape_of_part(source, model, tower, n)});
  return hold(rule_named(row.rule),
              {model, tower, shapes, part, row.expert() ? expert : row.slice, vocab_rows});
}

bool is_fused_expert(const Row& row, i64 expert) {
  auto has = [&](std::string_view number) {
    return row.sources[0].name.find(number) != std::string_view::npos;
  };
  return expert >= 0 && !has("{E}") && !has("{S}");
}

bool is_misfit(const Error& e) { return e.code() == Code::kBadGrid || e.code() == Code::kModelNumbers; }

std::string misfit_line(std::string_view parameter, const Error& e) {
  return cat(parameter, ": ", e.message(), e.expected().empty() ? "" : ": expected ", e.expected(),
             e.found().empty() ? "" : ", found ", e.found());
}

std::shared_ptr<const Holding> Holdings::of(const Site& site, const Row& row, Part part, i64 expert) {
  bool fused = is_fused_expert(row, expert);
  auto [at, first] = known_.try_emplace(std::tuple(&row, site.tower, fused ? expert : -1));
  if (first && !misfit_.contains(&row)) at->second = make(site, row, part, fused ? expert : 0);
  return at->second;
}

void Holdings::refuse_misfits(const std::function<std::string()>& sizes) const {
  if (misfit_.empty()) return;
  Error e(Code::kGridMisfit, cat("the model does not divide over this grid: ", misfit_.size(),
                                 misfit_.size() == 1 ? " kind of parameter" : " kinds of parameters"));
  std::size_t shown = 0;
  for (const std::string& line : lines_)
    if (shown++ < 20) e.note(line);
  if (lines_.size() > 20) e.note(cat("and ", lines_.size() - 20, " more"));
  throw e.help(sizes());
}

std::shared_ptr<const Holding> Holdings::make(const Site& site, const Row& row, Part part, i64 expert) {
  try {
    return std::make_shared<const Holding>(holding_of(model_, *site.tower, row, part, expert, vocab_rows_));
  } catch (const Error& e) {
    if (!is_misfit(e)) throw;
    misfit_.emplace(&row, true);
    lines_.push_back(misfit_line(cat(site.section->megatron, row.megatron), e));
    return nullptr;
  }
}

}  // namespace mckpt::impl
