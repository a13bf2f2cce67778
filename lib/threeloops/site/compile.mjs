// Compile Python for the Python of the pages, with that Python: node compile.mjs PYODIDE FOLDER
import {pathToFileURL} from 'node:url';
import {join} from 'node:path';

const [pyodide, folder] = process.argv.slice(2);
const {loadPyodide} = await import(pathToFileURL(join(pyodide, 'pyodide.mjs')));
const python = await loadPyodide({indexURL: pyodide + '/'});
python.mountNodeFS('/code', folder);
// no docstrings: nobody reads them there, and they are half of the bytes
const fine = python.runPython(
  `import compileall; compileall.compile_dir('/code', stripdir='/code', quiet=1, legacy=True, optimize=2)`);
process.exit(fine ? 0 : 1);
