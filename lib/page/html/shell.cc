// Escapes what comes from files, and puts styles, data and scripts into one page.
#include "page/html/shell.h"

#include "core/base/text.h"
#include "page/assets.h"
#include "page/picture_file.h"

namespace mckpt::impl {
std::string html_text(std::string_view text) {
  std::string out;
  for (std::string plain = escaped(text, SIZE_MAX); const char c : plain) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string script_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) c == '<' ? out += "\\u003c" : out += c;
  return out;
}

std::string html_page(std::string_view title, std::string_view json,
                      std::span<const std::string_view> scripts) {
  std::string out = cat(
      "<!doctype html>\n", picture_mark(),
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"mckpt ",
      MCKPT_VERSION,
      "\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<title>",
      html_text(title), "</title>\n<style>\n", page_asset("page.css"), "</style>\n</head>\n<body>\n",
      page_asset("page.html"), "<script type=\"application/json\" id=\"data\">", script_json(json),
      "</script>\n<script>\n\"use strict\";\n");
  for (std::string_view script : scripts) out += page_asset(script);
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace mckpt::impl
