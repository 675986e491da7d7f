// Knows an earlier picture by the comment at its beginning, and writes with StagedFile.
#include "page/picture_file.h"

#include <sys/stat.h>

#include <fstream>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staged_file.h"

namespace mckpt::impl {
namespace {

// Near the beginning of every picture, so that an earlier one is known as such.
constexpr std::string_view kMark = "<!-- a picture made by mckpt ";
constexpr std::size_t kMarkWithin = 256;

constexpr StagedFile::Options kStaging{.durable = false, .replace = true};

bool is_picture(const std::string& path) {
  std::string head(kMarkWithin, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find(kMark) != head.npos;
}

// As reports of conversions: a picture replaces an earlier picture, and nothing else.
void refuse_other_than_picture(const std::string& path) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || is_picture(path)) return;
  throw Error(Code::kOutputExists, "the name of the picture belongs to a file that is not a picture of mckpt")
      .file(path)
      .expected("no file, or an earlier picture")
      .help("choose another name, or remove the file first");
}

}  // namespace

std::string picture_mark() { return cat(kMark, MCKPT_VERSION, " -->\n"); }

PictureForm picture_form(const std::string& path) {
  const std::string_view name(path);
  if (name.ends_with(".html") || name.ends_with(".htm")) return PictureForm::kHtml;
  if (name.ends_with(".svg")) return PictureForm::kSvg;
  if (name.ends_with(".txt")) return PictureForm::kText;
  throw Error(Code::kUsage, "the name of a picture says what it is by its ending")
      .expected("a name that ends in .html or .svg, or of the parts of a parameter in .txt")
      .found(cat("'", escaped(path, 4096), "'"));
}

PictureForm checkpoint_picture_form(const std::string& path) {
  const PictureForm form = picture_form(path);
  if (form == PictureForm::kText)
    throw Error(Code::kUsage, "a picture in text is of the parts of a parameter: `parts`")
        .expected("a name that ends in .html or .svg")
        .found(escaped(path, 4096));
  return form;
}

void check_picture_path(const std::string& path) {
  refuse_empty_path(path, "the picture");
  refuse_other_than_picture(path);
  StagedFile::check(path, kStaging, 0);
}

void check_page_path(const std::string& path) {
  if (picture_form(path) != PictureForm::kHtml)
    throw Error(Code::kUsage, "`html` makes a page")
        .expected("a name that ends in .html")
        .found(escaped(path, 4096));
  check_picture_path(path);
}

void write_picture(const std::string& path, std::string_view text) {
  refuse_other_than_picture(path);  // another program may have made the file meanwhile
  StagedFile file(path, kStaging);
  OutputFiles out(file.folder(), {{file.name(), std::ssize(text)}});
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  file.publish(out);
}

}  // namespace mckpt::impl
