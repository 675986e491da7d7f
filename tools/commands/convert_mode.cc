// One flow for every conversion:
//
//   fields of the struct -> options of the line -> parse -> the struct -> plan_asked(), proof, copy, report
//
// `mckpt export` is the conversion fsdp-to-hf under a name of its own; only that name in its JSON answer
// differs.
#include <sys/stat.h>

#include "convert/asked/plan.h"
#include "convert/asked/words.h"
#include "convert/plan/conversion.h"
#include "core/base/error.h"
#include "options/fields.h"
#include "options/kinds.h"
#include "runtime/job/job.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_modes.h"
#include "tools/commands/convert_pages.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"
#include "tools/options/of_commands/convert_options.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// Refuses a DST that is a folder: the result is one file, and its name is not guessed. `name`: of an example.
void refuse_folder(const std::string& target, std::string_view name, std::string_view otherwise) {
  struct stat st;
  if (target.ends_with('/') && ::stat(target.c_str(), &st) != 0)
    throw Error(Code::kUsage, "DST has the name of a folder, but the result is one file")
        .found(escaped(target, 4096))
        .help(cat("name a file, such as ", escaped(target, 4096), name));
  if (::stat(target.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    throw Error(Code::kUsage, "DST is a folder, but the result is one file")
        .found(escaped(target))
        .help(cat("name a file in this folder", otherwise));
}

// Refuses mistakes that the line alone shows.
void check_asked(const AnyConversion& what, const ConvertOptions& options) {
  options.check();
  const auto* archive = std::get_if<ToHdf5>(&what);
  if (archive && archive->single_file && options.run.resume)
    throw Error(Code::kUsage, "--resume is for folders: a single file is begun anew")
        .help("leave out --resume");
  if (std::holds_alternative<ToSafetensors>(what))
    refuse_folder(options.target, "model.safetensors", ", or use mckpt export for a folder");
  if (std::holds_alternative<PtToSafetensors>(what) || std::holds_alternative<ToPt>(what))
    refuse_folder(options.target, "model.pt or .safetensors", "");
}

void declare(CommandLine& line, const ConversionKind& kind, AnyConversion& what, ConvertOptions& options) {
  FieldFlags ends(line, kind.name);
  ends.only({"source", "target"});
  fields(what, ends);
  options.declare(line, kind.resumes, kind.shares_work);
  FieldFlags rest(line, kind.name);
  rest.without({"source", "target"});
  rest.on_casts([&] { options.declare_casts(line); });
  fields(what, rest);
  describe_conversion(kind.name, line);
}

// The size that was chosen decides how a run is cut into ranks. Files of Megatron's ranks do not depend on
// it.
std::string note_of_grid(const AnyConversion& what) {
  const mckpt::Grid* grid = asked_grid(what);
  return grid && !std::holds_alternative<ToRanks>(what) ? chosen_dp_note(*grid) : "";
}

}  // namespace

Exit run_mode(CommandLine& line, const ConversionKind& kind, std::string_view command) {
  AnyConversion what = kind.empty();
  ConvertOptions options;
  declare(line, kind, what, options);
  line.parse();
  FieldsOfEveryCommand of_every_command(line);
  fields(what, of_every_command);
  options.source = source_of(what), options.target = target_of(what);
  check_asked(what, options);
  Planning how;
  how.threads = options.run.threads;
  how.rank = this_job().rank();
  how.model_alone = kind.name == "hf-to-fsdp";
  how.helper_folders = line.opening().helper_folders;
  auto plan = [&] {
    Conversion planned = plan_asked(what, how);
    if (std::string text = note_of_grid(what); !text.empty()) note(line.flags(), text);
    return planned;
  };
  return run_conversion(plan, command, options, line.flags(), kind.shares_work);
}

Exit export_command(CommandLine& line) { return run_mode(line, *conversion_mode("fsdp-to-hf"), "export"); }

}  // namespace mckpt::impl
